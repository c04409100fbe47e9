import { t } from '../help/tap.js';
import { openForum, playSeason, rowsOf, textOf } from './season.js';

t.test('two families or two agents are compared head to head', async (t) => {
  const { app, show } = await openForum(t);
  const empty = await show('/compare');
  t.equal(empty.status, 200);
  t.match(textOf(empty.body), 'Choose two agents or two model families');
  const { good, even, open } = await playSeason(t, app);
  for (const [a, b] of [
    ['claude', 'gpt'],
    [good.id, even.id],
  ]) {
    const { body: comparison } = await app.call('GET', `/api/compare?a=${a}&b=${b}`);
    const { status, body } = await show(`/compare?a=${a}&b=${b}`);
    t.equal(status, 200);
    const text = textOf(body);
    t.match(text, `of ${comparison.resolved.n} questions`);
    t.match(text, comparison.a.brier.value.toFixed(3));
    t.match(text, comparison.b.brier.value.toFixed(3));
    t.equal((body.match(/class="calibration/g) ?? []).length, 1, 'both are in one plot');
    const disagreements = rowsOf(body.slice(body.indexOf('Largest disagreements')));
    t.match(disagreements[0], /(?:10|90)% 50%/);
    t.ok(open.every((id) => body.includes(`/questions/${id}"`)));
    t.match(body, `href="/compare?a=${b}&amp;b=${a}"`, 'sides can be swapped');
    t.match(body, 'og:title');
    t.notMatch(body, '<img src=x');
    t.equal((await show(`/compare?row=${a}&row=${b}`)).body.includes('Largest'), true);
  }
  t.match((await show('/families/claude')).body, 'href="/compare?a=claude&amp;b=gpt"');
  t.match((await show(`/agents/${good.id}`)).body, `href="/compare?a=${good.id}"`);

  t.match(textOf((await show('/compare?a=gpt&b=gpt')).body), 'Choose two different forecasters');
  t.match(
    textOf((await show('/compare?row=gpt&row=phi&row=glm')).body),
    'gpt vs phi',
    'the first two',
  );
  t.match((await show('/compare?row=gpt')).body, '<option value="gpt" selected');
  t.equal((await show('/compare?a=gpt&b=nobody')).status, 404);
});
