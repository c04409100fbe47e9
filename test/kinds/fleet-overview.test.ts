import { type Human, makeHuman, suspend } from '../help/story.js';
import { t } from '../help/tap.js';
import { makeVisitor } from '../help/visitor.js';
import { connect } from '../help/ws-client.js';
import { namesOf, openBatches } from './fleet.js';
import type { Any } from './world.js';

/** A person's view of a fleet, in the API and on the page: errors, limits and last calls. */

const { app, register, start, questions, itemsOf, predict, predictOne } = await openBatches(t, 6);
const usage_path = '/api/me/agents/usage';

const usageOf = async ({ token }: Human, query = ''): Promise<Any> =>
  (await app.call('GET', usage_path + query, { token })).body;
const rowOf = async (human: Human, id = ''): Promise<Any> =>
  (await usageOf(human)).agents.find((one: Any) => one.id === id);
const limitOf = ({ limits }: Any, wanted: string): Any =>
  limits.find(({ name }: Any) => name === wanted);
const pageOf = ({ token }: Human, path = '/account/agents') =>
  makeVisitor(app.url, token).open(path);

t.test('every agent is listed with its limits, also one that never called', async (t) => {
  const { human, fleet } = await start(3);
  const answer = await app.call('GET', usage_path, { token: human.token });
  t.equal(answer.headers.get('cache-control'), 'no-store');
  t.equal(answer.body.total, 3);
  t.same(answer.body.agents.map(({ id }: Any) => id).sort(), fleet.map(({ id }) => id).sort());
  for (const row of answer.body.agents) {
    t.match(row, {
      suspended: false,
      last_prediction_at: null,
      calls: { since: null, count: 0, errors: 0, errors_by_code: [], last: null, last_error: null },
    });
    t.same(
      row.limits.map(({ name, limit, left }: Any) => [name, limit, left]),
      [
        ['key', 6_000, 6_000],
        ['predictions', 120, 120],
        ['comments', 2, 2],
        ['votes', 120, 120],
        ['webhooks', 20, 20],
      ],
    );
  }
});

t.test('calls, refusals and what is left belong to the agent that called', async (t) => {
  const { human, fleet } = await start(2);
  const [one, other] = fleet as [(typeof fleet)[number], (typeof fleet)[number]];
  const before = Date.now();
  t.equal((await predictOne(one.key, 0)).status, 201);
  const short = itemsOf(1, 2, { reasoning: 'A reasoning that is too short to be taken here.' });
  const path = `/api/questions/${questions[1]}/predict`;
  t.equal((await app.call('POST', path, { key: one.key, body: short[0] })).status, 400);
  t.match((await predict(one.key, short)).body, { refused: 2 });
  const row = await rowOf(human, one.id);
  t.equal(limitOf(row, 'predictions').left, 116);
  t.ok(limitOf(row, 'predictions').reset_seconds > 0);
  t.match(row.calls, {
    count: 3,
    errors: 3,
    errors_by_code: [{ code: 'REASONING_TOO_SHORT', count: 3 }],
    last: { method: 'POST', route: 'createPredictions', status: 200 },
    last_error: { route: 'createPredictions', code: 'REASONING_TOO_SHORT' },
  });
  for (const at of [row.calls.last.at, row.calls.last_error.at, row.last_prediction_at]) {
    t.match(at, /^\d{4}-.*\.\d{3}Z$/);
    t.ok(Date.parse(at) >= before - 1_000 && Date.parse(at) <= Date.now() + 1_000, at);
  }
  t.notMatch(JSON.stringify(row), /sk_|too short to be taken/);
  const still = await rowOf(human, other.id);
  t.match(still.calls, { count: 0, errors: 0 });
  t.equal(limitOf(still, 'predictions').left, 120);
});

t.test('a 429 is shown as such', async (t) => {
  const { human, fleet } = await start(1);
  const { id, key } = fleet[0] as (typeof fleet)[number];
  const comment = (n: number) =>
    app.call('POST', `/api/questions/${questions[n]}/comments`, {
      key,
      body: { content: `Readers of question ${n} should compare several sources.` },
    });
  t.same([(await comment(0)).status, (await comment(1)).status], [201, 201]);
  t.equal((await comment(2)).status, 429);
  const row = await rowOf(human, id);
  t.equal(limitOf(row, 'comments').left, 0);
  t.match(row.calls, { errors: 1, last: { status: 429 }, last_error: { code: 'RATE_LIMITED' } });
});

t.test('a call over the websocket counts like one over HTTP', async (t) => {
  const { human, fleet } = await start(1);
  const { id, key } = fleet[0] as (typeof fleet)[number];
  const socket = await connect(t, app.port, { headers: { 'x-api-key': key } });
  socket.send({ op: 'call', id: 1, route: 'POST /api/predictions', body: itemsOf(2, 1)[0] });
  t.match(await socket.answer(1), { status: 201 });
  const row = await rowOf(human, id);
  t.equal(limitOf(row, 'predictions').left, 119);
  t.match(row.calls.last, { route: 'createPrediction', status: 201 });
});

t.test('only its owner sees a fleet, and an agent that goes is gone', async (t) => {
  const { human, fleet } = await start(2);
  const [kept, gone] = fleet as [(typeof fleet)[number], (typeof fleet)[number]];
  const stranger = await makeHuman(app);
  t.match(await usageOf(stranger), { total: 0, agents: [], next_cursor: null });
  const own = { token: stranger.token };
  t.equal((await app.call('GET', `/api/me/agents/${kept.id}`, own)).status, 404);
  t.equal((await pageOf(stranger, `/account/agents/${kept.id}`)).status, 404);
  t.match(await app.call('GET', usage_path, { key: kept.key }), {
    status: 403,
    body: { code: 'HUMANS_ONLY' },
  });
  t.match(await app.call('GET', usage_path), { status: 401, body: { code: 'MISSING_AUTH' } });
  await app.call('DELETE', `/api/me/agents/${gone.id}`, { token: human.token });
  t.match(await usageOf(human), { total: 1, agents: [{ id: kept.id }] });
  await app.call('POST', '/api/me/agents', { ...own, body: { api_key: gone.key } });
  t.match(await usageOf(stranger), { total: 1, agents: [{ id: gone.id }] });
});

t.test("a suspended agent is marked, and wrong keys are nobody's errors", async (t) => {
  const { human, fleet } = await start(1);
  const { id, key, name } = fleet[0] as (typeof fleet)[number];
  await suspend(app, id);
  t.equal((await app.call('GET', '/api/me', { key })).status, 403);
  t.match(await rowOf(human, id), { suspended: true, calls: { count: 0, errors: 0 } });
  t.match((await pageOf(human)).text, new RegExp(`${name} suspended`));
});

t.test('a hundred agents are shown completely, by pages', async (t) => {
  const { human, fleet } = await start(100);
  const whole = await usageOf(human, '?limit=100');
  t.match(whole, { total: 100, next_cursor: null });
  const seen: string[] = [];
  for (let query: string | null = '?limit=40'; query !== null; ) {
    const { agents, next_cursor } = await usageOf(human, query);
    seen.push(...agents.map(({ id }: Any) => id));
    query = next_cursor === null ? null : `?limit=40&cursor=${next_cursor}`;
  }
  t.same(seen.toSorted(), fleet.map(({ id }) => id).toSorted());
  const shown = new Set<string>();
  for (let path: string | undefined = '/account/agents'; path !== undefined; ) {
    const { html, status } = await pageOf(human, path);
    t.equal(status, 200);
    for (const { id } of fleet) if (html.includes(`/account/agents/${id}"`)) shown.add(id);
    path = /href="([^"]*)" rel="next"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
  }
  t.equal(shown.size, 100);
});

t.test('the page shows errors, last calls and what is left, as text', async (t) => {
  const human = await makeHuman(app);
  t.match(
    (await pageOf(human)).text,
    /No agents yet\. An agent can forecast once you have linked it/,
  );
  const name = '<b>x</b> & "y"';
  const { body } = await register(human, [{ name, model: 'm' }, ...namesOf(2)]);
  const [failing, predicting] = body.results.map(({ result }: Any) => result.api_key);
  await app.call('POST', `/api/questions/${questions[0]}/predict`, {
    key: failing,
    body: { probability: 50, reasoning: 'Too short.' },
  });
  t.equal((await predictOne(predicting, 5)).status, 201);
  const page = await pageOf(human);
  t.equal(page.status, 200);
  t.equal(page.headers.get('cache-control'), 'no-store');
  t.match(page.text, name);
  t.notMatch(page.html, '<b>x');
  t.match(page.text, /REASONING_TOO_SHORT/);
  t.match(page.text, /POST createPrediction, 201/);
  t.match(page.text, /no calls yet/);
  t.match(page.text, /119 of 120/);
});
