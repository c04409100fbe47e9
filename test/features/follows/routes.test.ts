import { max_follows } from '../../../src/features/follows/schema.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Following: what can be followed, by whom, and what changed since a visit. */

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const question_id = await makeOpenQuestion(app);
type Caller = { readonly token: string } | { readonly key: string };

const follow = (by: Caller, kind: string, id: string, query = '') =>
  app.call('PUT', `/api/me/follows/${kind}/${encodeURIComponent(id)}${query}`, by);
const list = async (by: Caller, query = '') =>
  (await app.call('GET', `/api/me/follows${query}`, by)).body;

t.test('people and agents follow a question, once', async (t) => {
  for (const by of [human, await makeHuman(app), agent, await makeAgent(app)]) {
    const first = await follow(by, 'question', question_id.toUpperCase());
    t.equal(first.status, 201);
    t.match(first.body, { kind: 'question', id: question_id, name: /^Will/, move_points: 10 });
    t.equal((await follow(by, 'question', question_id)).status, 200);
    t.equal((await list(by)).total, 1);
  }
  t.equal((await app.call('PUT', `/api/me/follows/question/${question_id}`)).status, 401);
});

t.test(
  'agents, families and searches can be followed too, and are listed newest first',
  async (t) => {
    const by = await makeHuman(app);
    await follow(by, 'agent', agent.id);
    await follow(by, 'family', 'Claude');
    const search = await follow(by, 'search', 'q= open  weights &category=technology&tag=LLM');
    t.equal(search.body.id, 'q=open+weights&category=technology&tag=%23LLM');
    t.equal(search.body.name, '“open weights” in Technology #LLM');
    t.equal((await follow(by, 'search', 'chips')).body.id, 'q=chips');
    const { total, follows } = await list(by);
    t.equal(total, 4);
    t.match(follows, [
      { kind: 'search', id: 'q=chips', move_points: null },
      { kind: 'search' },
      { kind: 'family', id: 'claude', name: 'claude' },
      { kind: 'agent', id: agent.id, name: agent.name },
    ]);
    t.equal((await list(by, '?kind=family')).total, 1);
    const page = await list(by, '?limit=3');
    t.equal((await list(by, `?limit=3&cursor=${page.next_cursor}`)).follows.length, 1);
  },
);

t.test('a follow ends, and ending it again changes nothing', async (t) => {
  const by = await makeHuman(app);
  const path = `/api/me/follows/question/${question_id}`;
  await follow(by, 'question', question_id);
  t.equal((await app.call('GET', path, by)).status, 200);
  t.equal((await app.call('DELETE', path, by)).status, 204);
  t.equal((await app.call('DELETE', path, by)).status, 204);
  t.equal((await app.call('GET', path, by)).status, 404);
  t.equal((await list(by)).total, 0);
});

t.test('the filters of a search are stored while somebody follows it', async (t) => {
  const [one, other] = [await makeHuman(app), await makeAgent(app)];
  const search = 'q=orchards';
  const stored = async () =>
    (await app.sql`select from followed_searches where subject = ${search}`).length;
  const unfollow = (by: Caller) =>
    app.call('DELETE', `/api/me/follows/search/${encodeURIComponent(search)}`, by);
  for (const by of [one, other]) await follow(by, 'search', search);
  t.equal(await stored(), 1);
  await unfollow(one);
  t.equal(await stored(), 1);
  await unfollow(other);
  t.equal(await stored(), 0);
});

t.test('what does not exist cannot be followed', async (t) => {
  const unknown = '01890000-0000-7000-8000-000000000000';
  const draft = await makeOpenQuestion(app, { publish: false });
  for (const [kind, id, status, code] of [
    ['question', unknown, 404, 'QUESTION_NOT_FOUND'],
    ['question', draft, 404, 'QUESTION_NOT_FOUND'],
    ['question', 'x', 404, 'QUESTION_NOT_FOUND'],
    ['agent', unknown, 404, 'AGENT_NOT_FOUND'],
    ['family', 'clod', 404, 'FAMILY_NOT_FOUND'],
    ['search', ' ', 400, 'INVALID_SEARCH'],
    ['search', 'sort=newest', 400, 'INVALID_SEARCH'],
    ['search', 'q=a&q=b', 400, 'INVALID_SEARCH'],
    ['search', 'question_type=odd', 400, 'INVALID_SEARCH'],
    ['search', 'category=nowhere', 400, 'INVALID_CATEGORY'],
    ['search', 'x'.repeat(201), 400, 'INVALID_SEARCH'],
    ['search', '東'.repeat(120), 400, 'INVALID_SEARCH'],
    ['search', `tag=${'ä'.repeat(51)}`, 400, 'INVALID_SEARCH'],
    ['person', unknown, 404, 'NOT_FOUND'],
  ] as const) {
    const { status: given, body } = await follow(human, kind, id);
    t.match({ status: given, code: body.code }, { status, code }, `${kind} ${id.slice(0, 20)}`);
  }
  t.equal((await follow(human, 'search', 'x'.repeat(200))).status, 201);
});

t.test('move_points is kept when a question is followed again without it', async (t) => {
  const by = await makeAgent(app);
  t.equal((await follow(by, 'question', question_id, '?move_points=3')).body.move_points, 3);
  t.equal((await follow(by, 'question', question_id)).body.move_points, 3);
  t.equal((await follow(by, 'question', question_id, '?move_points=0')).status, 400);
});

t.test('a follower can follow only so much', async (t) => {
  const by = await makeAgent(app);
  await app.sql`
    insert into follows (id, agent_id, kind, subject, created_at)
    select gen_random_uuid(), ${by.id}, 'search', 'q=' || n, now()
    from generate_series(1, ${max_follows - 1}) n`;
  t.equal((await follow(by, 'question', question_id)).status, 201);
  t.match(await follow(by, 'agent', agent.id), {
    status: 409,
    body: { code: 'FOLLOW_LIMIT_REACHED' },
  });
  t.equal((await follow(by, 'question', question_id)).status, 200, 'it is followed already');
  t.equal((await follow(by, 'search', 'one too many')).status, 409);
  const left = await app.sql`select from followed_searches where subject = 'q=one+too+many'`;
  t.equal(left.length, 0, 'a refused follow leaves nothing behind');
});

t.test('a visit lasts while the person looks, and then shows what changed since', async (t) => {
  const by = await makeHuman(app);
  const id = await makeOpenQuestion(app);
  await follow(by, 'question', id);
  const visit = async () => (await app.call('POST', '/api/me/follows/visit', by)).body.since;
  t.equal(await visit(), null);
  t.equal(await visit(), null, 'still the first visit');
  await app.sql`update follow_visits set visited_at = visited_at - interval '31 minutes'`;
  const since = await visit();
  t.type(since, 'string');
  t.equal(await visit(), since);
  const predicted = await app.call('POST', `/api/questions/${id}/predict`, {
    key: agent.key,
    body: { probability: 80, scale: 'percent', reasoning: makeReasoning() },
  });
  t.equal(predicted.status, 201);
  const changes = async () =>
    (await list(by, `?changes_since=${encodeURIComponent(since)}`)).follows[0].changes;
  await until('counted', async () => (await changes()).forecast !== null);
  t.match(await changes(), { since, forecast_before: null, predictions: 1, comments: 0 });
  t.notMatch((await list(by)).follows[0], { changes: {} });
  t.equal((await app.call('POST', '/api/me/follows/visit', agent)).status, 403);
});

t.test("a person's first follow begins a weekly digest, and no later one does", async (t) => {
  const by = await makeHuman(app);
  const settings = async () => (await app.call('GET', '/api/me/account/mail', by)).body;
  t.match(await settings(), { digest: 'off', next_digest_at: null });
  await follow(by, 'question', question_id);
  t.match(await settings(), { digest: 'weekly', next_digest_at: String, move_points: 10 });
  await app.call('PATCH', '/api/me/account/mail', { ...by, body: { digest: 'off' } });
  await follow(by, 'agent', agent.id);
  t.match(await settings(), { digest: 'off' });
});
