import { makeAgent, makeHuman } from '../help/story.js';
import { t } from '../help/tap.js';
import { openForum, playSeason, rowsOf, textOf } from './season.js';

t.test('the page of an agent shows who it is, its record and every forecast', async (t) => {
  const { app, show } = await openForum(t);
  const { good, poor } = await playSeason(t, app);
  const { body: profile } = await app.call('GET', `/api/agents/${good.id}`);
  const { body: points } = await app.call('GET', `/api/agents/${good.id}/points`);
  const { status, body } = await show(`/agents/${good.id}`);
  const text = textOf(body);
  t.equal(status, 200);

  t.test('scores with their intervals, as the API has them', async (t) => {
    for (const [name, digits] of [
      ['brier', 3],
      ['log', 3],
      ['relative', 1],
      ['skill', 3],
    ] as const) {
      const score = profile.performance.scores[name];
      if (score === null) continue;
      const { value, interval, n } = score;
      const show = (one: number) => Math.abs(one).toFixed(digits);
      t.match(text, `${show(value)} `, name);
      t.match(text, new RegExp(`${show(interval.low)} to .?${show(interval.high)} n = ${n}`), name);
    }
    t.match(text, '✓ Owner verified');
    t.notMatch(text, 'Style:', 'it said nothing about its style');
    t.match(body, /"@type":"ProfilePage"/);
    t.notMatch(body, '<img src=x');
    t.notMatch(body, /\sstyle=|\son[a-z]+="/);
  });

  t.test('calibration as a picture, in words and as a table', async (t) => {
    const bins = profile.performance.calibration.bins.filter(({ n }: { n: number }) => n > 0);
    const dots = [...body.matchAll(/<title>predicted [^<]* n = (\d+)<\/title>/g)].map(([, n]) =>
      Number(n),
    );
    t.same(
      dots,
      bins.map(({ n }: { n: number }) => n),
    );
    t.equal(
      (body.match(/class="faded"/g) ?? []).length,
      bins.filter(({ n }: { n: number }) => n < 5).length,
    );
    t.match(text, /\d+ to \d+% /);
  });

  t.test('best and worst calls, and a list that can be narrowed', async (t) => {
    t.ok(text.includes('Best calls') && text.includes(`+${points.best[0].net}`));
    t.ok(text.includes(`−${-points.worst[0].net}`));
    const history = (html: string) => rowsOf(html.slice(html.indexOf('id="history"')));
    t.equal(history(body).length, 16);
    const won = history((await show(`/agents/${good.id}?result=won`)).body);
    const lost = history((await show(`/agents/${good.id}?result=lost`)).body);
    t.equal(won.length + lost.length, 12);
    t.ok(won.every((row) => /points|\+\d+$/.test(row)) && lost.every((row) => /−\d+$/.test(row)));
    t.match(textOf((await show(`/agents/${poor.id}`)).body), 'Worst calls');
  });

  t.test('an agent that there is not is not found', async (t) => {
    for (const id of ['00000000-0000-7000-8000-000000000000', 'nobody']) {
      const answer = await show(`/agents/${id}`);
      t.equal(answer.status, 404);
      t.match(answer.body, 'Page not found');
    }
    t.equal((await show(`/agents/${good.id}?result=drawn`)).status, 400);
  });
  t.end();
});

t.test('an imported agent is marked and never called verified', async (t) => {
  const { app, show } = await openForum(t);
  const name = 'Harbour Almanac';
  const body_of = { admin: true, body: { items: [{ name, model: 'gpt-5' }] } };
  const imported = await app.call('POST', '/api/admin/agents/import', body_of);
  const id = imported.body.results[0].agent_id;
  const { body } = await app.call('GET', `/api/agents/${id}`);
  t.match(body.agent, { kind: 'imported', trust_label: 'unverified' });
  const text = textOf((await show(`/agents/${id}`)).body);
  t.match(text, /Imported .*Nobody on this forum answers for this agent/s);
  t.notMatch(text, 'verified');
  const { id: linked } = await makeAgent(app, { human: await makeHuman(app) });
  const { body: own } = await app.call('GET', `/api/agents/${linked}`);
  t.match(own.agent, { kind: 'agent', trust_label: 'verified' });
});
