import { ensureImportOwner } from '../../../src/features/accounts/index.js';
import { setCommentHidden } from '../../../src/features/comments/index.js';
import { makeAdjustedBoards } from '../../../src/features/leaderboards/adjusted.js';
import {
  findBoardDifferences,
  markDebaters,
  markStanding,
} from '../../../src/features/leaderboards/index.js';
import { boardKey, builtKey } from '../../../src/features/leaderboards/live.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { connect } from '../../help/ws-client.js';
import { makeContent } from '../comments/texts.js';
import { addGroups, addScores, whileRebuilding } from './world.js';

/** Leaderboards as clients read and follow them. */

const app = await startApp(t, {
  env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000', LIMIT_VOTES: '1000000' },
});
const { deps } = await openParts(t, { stores: app.stores });
const prefix = app.stores.redis_prefix;
const key = boardKey(prefix, { kind: 'debaters', slot: 'all:all' });
const findAll = () =>
  findBoardDifferences({ sql: app.sql, redis: deps.redis, prefix, now: new Date() });
const settle = () =>
  whileRebuilding(deps, () =>
    until('the board', async () => (await findAll()).length === 0, 30_000, 50),
  );
const read = async (query = '') =>
  (await app.call('GET', `/api/leaderboard/debaters${query}`)).body as {
    leaderboard: { rank: number; user_id: string; upvotes: number; [name: string]: unknown }[];
    total: number;
    next_cursor: string | null;
  };
const post = async (agent: Agent, path: string): Promise<string> => {
  const body = { content: makeContent() };
  return (await app.call('POST', path, { key: agent.key, body })).body.comment.id;
};
const vote = (agent: Agent, id: string) =>
  app.call('POST', `/api/comments/${id}/upvote`, { key: agent.key });

const owners = await Promise.all(Array.from({ length: 5 }, () => makeHuman(app)));
// Creates one agent after another. Agents with equal scores are ranked by id, that is, by age.
const agents: Agent[] = [];
for (const human of owners) agents.push(await makeAgent(app, { human }));
const [a, b, c, d, e] = agents as [Agent, Agent, Agent, Agent, Agent];
const question_id = await makeOpenQuestion(app);
const path = `/api/questions/${question_id}/comments`;

t.test('a leaderboard on the socket follows the one over HTTP', async (t) => {
  const socket = await connect(t, app.port);
  const names = ['points', 'points:7d', 'debaters', 'points:all:all', 'debaters:all:imported'];
  const topics = names.map((name) => `leaderboard:${name}`);
  socket.send({ op: 'subscribe', id: 1, topics });
  t.match(await socket.answer(1), { op: 'subscribed', topics });
  for (const topic of topics) {
    await socket.get(topic, (frame) => frame.op === 'snapshot' && frame.topic === topic);
  }
  const { id } = await makeAgent(app, { human: await makeHuman(app) });
  const readPoints = async () => (await app.call('GET', '/api/leaderboard?by=points')).body;
  const count = agents.length + 1;
  await whileRebuilding(deps, () =>
    until('the board has the agent', async () => (await readPoints()).total === count),
  );
  const newest = (): Record<string, unknown> => {
    const frames = socket.frames.filter(({ topic }) => topic === 'leaderboard:points');
    return Object.assign({}, ...frames.map(({ data, set }) => data ?? set));
  };
  await until('the socket has the agent', () => newest()['total'] === count);
  const { by, category, period, leaderboard, total } = await readPoints();
  t.strictSame(newest(), { by, category, period, leaderboard, total });
  t.ok(leaderboard.some(({ user_id }: { user_id: string }) => user_id === id));
  for (const [n, name] of [
    '',
    'wealth',
    'points:1d',
    'points:all:robots',
    'debaters:7d',
  ].entries()) {
    socket.send({ op: 'subscribe', id: 10 + n, topics: [`leaderboard:${name}`] });
    t.match(await socket.answer(10 + n), { op: 'error', code: 'INVALID_TOPIC' }, name);
  }
});

t.test('agents are ranked by the upvotes on what they wrote', async (t) => {
  const [ca, cb] = [await post(a, path), await post(b, path)];
  const ra = await post(a, `/api/comments/${cb}/reply`);
  await post(c, `/api/comments/${ra}/reply`);
  await post(e, path);
  await Promise.all([vote(b, ca), vote(c, ca), vote(d, ra), vote(c, cb), vote(d, cb), vote(e, cb)]);
  await settle();
  const { leaderboard, total } = await read();
  t.equal(total, 4, 'an agent that wrote nothing is not on the board');
  t.same(leaderboard.slice(0, 2), [
    { rank: 1, kind: 'agent', user_id: a.id, name: a.name, upvotes: 3, comments: 1, replies: 1 },
    { rank: 1, kind: 'agent', user_id: b.id, name: b.name, upvotes: 3, comments: 1, replies: 0 },
  ]);
  const ranksOf = (rows: typeof leaderboard) =>
    rows.map(({ rank, upvotes }) => `${rank}: ${upvotes}`);
  t.same(ranksOf(leaderboard), ['1: 3', '1: 3', '3: 0', '3: 0']);
  await app.call('DELETE', `/api/comments/${cb}/upvote`, { key: e.key });
  await settle();
  t.same(ranksOf((await read()).leaderboard), ['1: 3', '2: 2', '3: 0', '3: 0']);
});

t.test('pages follow each other, from Redis as from the record', async (t) => {
  const whole = (await read()).leaderboard;
  for (const source of ['Redis', 'the record']) {
    if (source === 'the record') await deps.redis.del(key, builtKey(prefix));
    const rows = [];
    let cursor = '';
    for (let n = 0; n < 10; n += 1) {
      const page = await read(`?limit=1${cursor}`);
      t.equal(page.total, 4);
      rows.push(...page.leaderboard);
      if (page.next_cursor === null) break;
      cursor = `&cursor=${page.next_cursor}`;
    }
    t.same(rows, whole, source);
    t.same((await read('?limit=2&offset=1')).leaderboard, whole.slice(1, 3));
  }
  await settle();
});

t.test('a board that is lost is made anew', async (t) => {
  const whole = (await read()).leaderboard;
  await deps.redis.del(key, builtKey(prefix));
  t.same((await read()).leaderboard, whole, 'meanwhile it is read from the record');
  await settle();
  t.same((await read()).leaderboard, whole);
  await post(d, path);
  await settle();
  t.equal((await read()).total, 5);
});

t.test('what is hidden does not count until it is shown again', async (t) => {
  const before = (await read()).leaderboard;
  const { body } = await app.call('GET', path);
  const [first] = body.comments as { id: string; user_id: string }[];
  const set = (at: Date | null) => app.sql.begin((tx) => setCommentHidden(tx, first?.id ?? '', at));
  await set(new Date());
  await settle();
  t.notSame((await read()).leaderboard, before);
  await set(null);
  await settle();
  t.same((await read()).leaderboard, before);
});

t.test('the general leaderboard has it too, without categories and periods', async (t) => {
  const own = (await read()).leaderboard;
  const { status, body } = await app.call('GET', '/api/leaderboard?by=debaters&limit=3');
  t.equal(status, 200);
  t.match(body.entries, own.slice(0, 3));
  t.same(body.entries, body.leaderboard);
  const rest = await app.call('GET', `/api/leaderboard?by=debaters&cursor=${body.next_cursor}`);
  t.match(rest.body.entries, own.slice(3));
  const wrong = ['period=7d', 'category=society', 'category=nonsense'];
  for (const query of wrong) {
    t.equal((await app.call('GET', `/api/leaderboard?by=debaters&${query}`)).status, 400);
  }
});

t.test('a suspended or unlinked agent is off the board until that ends', async (t) => {
  const before = (await read()).leaderboard;
  const act = (name: string) =>
    app.call('POST', `/api/admin/agents/${a.id}/${name}`, {
      admin: true,
      body: { reason: 'Automated spam in debates.' },
    });
  t.equal((await act('suspend')).status, 200);
  await settle();
  t.notOk((await read()).leaderboard.some(({ user_id }) => user_id === a.id));
  await act('restore');
  await settle();
  t.same((await read()).leaderboard, before);
  await app.call('DELETE', `/api/me/agents/${b.id}`, { token: owners[1]?.token ?? '' });
  await settle();
  t.notOk((await read()).leaderboard.some(({ user_id }) => user_id === b.id));
});

t.test('imported agents have their own board, and are on the board of all agents', async (t) => {
  const nobody = await ensureImportOwner(app.sql);
  await app.sql`update agents set owner_id = ${nobody} where id = ${c.id}`;
  await app.sql.begin(async (tx) => {
    await markDebaters(tx, [c.id]);
    await markStanding(tx, [c.id]);
  });
  await settle();
  t.notOk((await read()).leaderboard.some(({ user_id }) => user_id === c.id));
  const imported = await read('?kind=imported');
  t.match(imported, { total: 1, leaderboard: [{ rank: 1, kind: 'imported', user_id: c.id }] });
  const general = await app.call('GET', '/api/leaderboard?by=debaters&kind=imported');
  t.match(general.body.entries, imported.leaderboard);
  const linked = await read();
  const all = await read('?kind=all');
  t.equal(all.total, linked.total + 1);
  t.equal(all.leaderboard.find((row) => row.user_id === c.id)?.kind, 'imported');
  t.equal(all.leaderboard.find((row) => row.user_id === a.id)?.kind, 'agent');
});

t.test('families and models are rows without an agent, with references between them', async (t) => {
  const base = { category: 'society', resolved_at: new Date() };
  const repeat = (kind: string, name: string, share: number) =>
    Array.from({ length: 10 }, () => ({ ...base, kind, name, share, relative: 100 * share - 60 }));
  await addGroups(app.sql, [
    ...repeat('family', 'claude', 0.8),
    ...repeat('model', 'openai/gpt-5', 0.7),
    ...repeat('crowd', 'crowd', 0.6),
    ...repeat('even', 'even', 0.5),
  ]);
  await app.sql`insert into standing_changes (agent_id, category) values (${a.id}, 'society')`;
  await settle();
  const look = async (query: string) =>
    (await app.call('GET', `/api/leaderboard?${query}&category=society`)).body;
  const families = await look('of=families&by=brier');
  const even = { rank: null, kind: 'even', user_id: null, name: 'even', model: null, brier: 0.25 };
  t.match(families, { by: 'brier', of: 'families', category: 'society', total: 3 });
  t.match(families.leaderboard, [
    {
      rank: 1,
      kind: 'family',
      user_id: null,
      name: 'claude',
      model: null,
      n: 10,
      model_family: 'claude',
      value: 0.04,
      brier: 0.04,
      interval: { low: 0.04, high: 0.04 },
    },
    { rank: null, kind: 'crowd', value: 0.16, model_family: null },
    even,
  ]);
  const models = await look('of=models&by=relative');
  t.match(models.leaderboard[0], {
    rank: 1,
    kind: 'model',
    name: 'openai/gpt-5',
    model: 'openai/gpt-5',
    value: 10,
    model_family: 'gpt',
    relative: 10,
  });
  t.match((await look('by=log')).leaderboard, [
    { kind: 'crowd' },
    { kind: 'even', log_score: Math.round(-1e6 * Math.LN2) / 1e6 },
  ]);
  t.match(await look('by=accuracy&of=agents'), { total: 1, leaderboard: [{ accuracy: 100 }] });
  t.match((await look('by=points')).leaderboard, [], 'nothing is won by what is compared');
  for (const query of [
    'of=families&by=points',
    'of=models&by=skill',
    'of=families&by=debaters',
    'of=people',
    'by=adjusted&period=7d',
    'by=adjusted&category=society',
    'by=wealth',
  ]) {
    const { status, body } = await app.call('GET', `/api/leaderboard?${query}`);
    t.match({ status, body }, { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
  }
});

t.test('an adjusted board says what it was made of', async (t) => {
  t.match((await app.call('GET', '/api/leaderboard?by=adjusted')).body, { total: 0, entries: [] });
  const scores = Array.from({ length: 20 }, () => makeId()).flatMap((question_id) =>
    [a, d, e].map(({ id }, n) => ({
      agent_id: id,
      category: 'society',
      resolved_at: new Date(),
      question_id,
      stated: 90 - 10 * n,
      hit: true,
    })),
  );
  await addScores(app.sql, scores);
  const at = new Date();
  await makeAdjustedBoards(app.sql, at);
  const { body } = await app.call('GET', '/api/leaderboard?by=adjusted&limit=2');
  t.match(body, {
    by: 'adjusted',
    of: 'agents',
    total: 3,
    coverage: {
      made_at: at.toISOString(),
      least_questions: 20,
      least_agents: 3,
      scores: 60,
      covered_scores: 60,
      covered_share: 100,
      forecasters: 3,
      questions: 20,
    },
    leaderboard: [
      {
        rank: 1,
        user_id: a.id,
        n: 20,
        adjusted_brier: 0.01,
        value: 0.01,
        rank_interval: { low: 1, high: 1 },
      },
      { rank: 2, user_id: d.id, adjusted_brier: 0.04, interval: { low: 0.04, high: 0.04 } },
    ],
  });
  const rest = `/api/leaderboard?by=adjusted&limit=2&cursor=${body.next_cursor}`;
  t.match((await app.call('GET', rest)).body.leaderboard, [{ rank: 3, user_id: e.id }]);
  await app.sql`delete from scores`;
});

t.test('a process that is about to end says so to its subscribers', async (t) => {
  const ending = await startApp(t, { roles: ['api'] });
  const sockets = await Promise.all(Array.from({ length: 30 }, () => connect(t, ending.port)));
  for (const socket of sockets) socket.send({ op: 'subscribe', id: 1, topics: ['system'] });
  for (const socket of sockets) {
    const snapshot = await socket.get('the snapshot', ({ op }) => op === 'snapshot');
    t.match(snapshot, { topic: 'system', data: { node: 'api-0', status: 'serving', notices: [] } });
  }
  await ending.stop();
  for (const socket of sockets) {
    t.equal(await socket.closed(), 4200);
    t.ok(socket.frames.some(({ op }) => op === 'bye'));
  }
});
