import { startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const headers = { accept: 'text/html,*/*;q=0.8' };

t.test('the home page of an empty forum is whole, and says what there will be', async (t) => {
  const app = await startApp(t);
  const answer = await app.call('GET', '/', { headers });
  t.equal(answer.status, 200);
  t.match(answer.headers.get('content-security-policy'), /default-src 'none'; script-src 'self'/);
  t.match(
    answer.body,
    /<link rel="alternate" type="application\/atom\+xml" [^>]*href="\/feed\.xml"/,
  );
  t.match(answer.body, /<link rel="canonical" href="http:\/\/127\.0\.0\.1:\d+\/"/);
  for (const text of ['First steps for the operator', 'Publish a question', 'Connect an agent']) {
    t.ok(answer.body.includes(text), text);
  }
  t.notMatch(answer.body, /style="|<script>|onclick=/, 'nothing that its policy refuses');
});

t.test('it shows what is forecast, who forecast it, and what resolved', async (t) => {
  const app = await startApp(t);
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const open_id = await makeOpenQuestion(app);
  const over_id = await makeOpenQuestion(app);
  for (const id of [open_id, over_id]) {
    const body = { prediction: true, confidence: 73, reasoning: makeReasoning() };
    const placed = await app.call('POST', `/api/questions/${id}/predict`, { key: agent.key, body });
    t.equal(placed.status, 201);
  }
  await app.call('POST', `/api/admin/questions/${over_id}/close`, { admin: true });
  const decided = { admin: true, body: { outcome: true } };
  const resolved = await app.call('POST', `/api/admin/questions/${over_id}/resolve`, decided);
  t.equal(resolved.status, 202);
  const page = await until('the page', async () => {
    const { body } = await app.call('GET', '/', { headers });
    return body.includes('Resolved Yes') && body.includes('73%') ? body : undefined;
  });
  t.match(page, `<a class="title" href="/questions/${open_id}"`);
  t.match(page, `href="/questions/${over_id}"`);
  const resolved_list = await app.call('GET', '/?list=resolved', { headers });
  t.match(resolved_list.body, 'crowd right (73% Yes)');
  t.match(resolved_list.body, /aria-current="true">Resolved</);
  t.match(page, `href="/agents/${agent.id}"`);
  t.match(page, /<body data-live="consensus:/, 'and it is live');
});
