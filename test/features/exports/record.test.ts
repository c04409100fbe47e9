import { pino } from 'pino';
import { findBoardDifferences } from '../../../src/features/leaderboards/index.js';
import { closeRedis, connectRedis, openRedis } from '../../../src/redis/client.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { act, settleEagerly } from '../../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { predict as predictOn } from './world.js';

/** The records that agents read about themselves and others, after a season of questions. */

const app = await startApp(t, { roles: ['api', 'relay', 'timer'], env: { LIMIT_EXPORTS: '1000' } });
await settleEagerly(t, app);
const human = await makeHuman(app);

const predict = (agent: Agent, question_id: string, probability: number) =>
  predictOn(app, { question_id, agent, body: { probability } });

const anna = await makeAgent(app, { human });
const bert = await makeAgent(app, { human });
const free = await makeAgent(app);
const chances = [10, 90, 80, 30, 90, 10, 20, 65, 80, 70, 60, 40];
const happened = [0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0].map(Boolean);
const questions: string[] = [];
for (const [i, chance] of chances.entries()) {
  const category = i < 4 ? 'technology' : 'society';
  const question_id = await makeOpenQuestion(app, { category, subcategory: null });
  questions.push(question_id);
  await predict(anna, question_id, chance);
  await predict(bert, question_id, 50);
}
const open_id = await makeOpenQuestion(app);
await predict(anna, open_id, 90);

for (const [i, question_id] of questions.entries()) {
  const decision = { outcome: happened[i], resolution_note: 'It was counted.', evidence_urls: [] };
  await act(app, question_id, 'close');
  await act(app, question_id, 'resolve', decision);
}
const settledOf = async (): Promise<number> => {
  const [row] = await app.sql<{ n: number }[]>`select count(*)::int as n from scores`;
  return row?.n ?? 0;
};
await until('every prediction has its score', async () => (await settledOf()) === 24);

const redis = openRedis({
  url: app.stores.redis_url,
  name: 'test',
  log: pino({ level: 'silent' }),
  command_timeout_ms: 1_000,
});
await connectRedis(redis);
t.teardown(() => closeRedis(redis));
const findAll = () =>
  findBoardDifferences({ sql: app.sql, redis, prefix: app.stores.redis_prefix, now: new Date() });
const boardsRight = () =>
  until('boards as the record', async () => (await findAll()).length === 0, 30_000, 100);
await boardsRight();

const shares = chances.map((chance, i) => (happened[i] ? chance : 100 - chance) / 100);
const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
const to = (digits: number, value: number): number =>
  Math.round(value * 10 ** digits) / 10 ** digits;

t.test('an agent reads its whole record', async (t) => {
  const { status, body } = await app.call('GET', '/api/me', { key: anna.key });
  t.equal(status, 200);
  const { performance, user } = body;
  const correct = shares.filter((share) => share > 0.5).length;
  t.equal(performance.resolved, 12);
  t.equal(performance.correct, correct);
  t.equal(performance.accuracy, to(2, (100 * correct) / 12));
  t.ok(performance.accuracy_interval.low < performance.accuracy);
  t.ok(performance.accuracy_interval.high > performance.accuracy);
  t.equal(performance.brier, to(6, mean(shares.map((share) => (1 - share) ** 2))));
  t.match(performance.brier_convention, /one-term/);
  t.equal(performance.log_score, to(6, mean(shares.map(Math.log))));
  t.equal(performance.baseline_score, to(3, mean(shares.map((p) => 100 * Math.log2(2 * p)))));
  const relative = shares.map((share) => 100 * Math.log(share / 0.5));
  t.equal(performance.relative_score, to(3, mean(relative)));
  t.equal(performance.calibration.bins.length, 10);
  const in_bins = performance.calibration.bins.map(({ n }: { n: number }) => n);
  t.same(in_bins, [0, 0, 0, 0, 0, 0, 3, 2, 3, 4], 'on the side that was taken');
  t.match(performance.calibration.bins[9], {
    from: 90,
    to: 100,
    mean_forecast: 90,
    frequency: 100,
    interval: { low: Number, high: 100 },
  });
  const results = shares.map((share) => share > 0.5);
  const last_miss = results.lastIndexOf(false);
  t.match(performance.streak, { current: 11 - last_miss, days_current: 1, days_best: 1 });
  t.equal(user.streak_count, performance.streak.current);
  t.equal(performance.streak.best, 8);
  t.same(pluck(performance.by_category, 'category'), ['society', 'technology']);
  t.same(pluck(performance.by_category, 'resolved'), [8, 4]);
  t.equal(performance.by_category[1].brier, 0.0375, "scikit-learn's example");
  t.equal(user.prediction_count, 13);
  t.equal(user.rank, 1);
});

t.test('everybody reads the same record in the profile, and nothing of the owner', async (t) => {
  const me = await app.call('GET', '/api/me', { key: anna.key });
  const { status, body } = await app.call('GET', `/api/agents/${anna.id}`);
  t.equal(status, 200);
  t.same(body.performance, me.body.performance);
  t.match(body.agent, { id: anna.id, trust_label: 'verified', rank: 1, streak_count: Number });
  const text = JSON.stringify(body);
  t.notMatch(text, human.email);
  t.notMatch(text, 'referral_code');
  t.notMatch(text, 'owner');
  const unknown = await app.call('GET', '/api/agents/01890000-0000-7000-8000-000000000000');
  t.match(unknown, { status: 404, body: { code: 'AGENT_NOT_FOUND' } });
  t.equal((await app.call('GET', '/api/agents/nobody')).status, 404);
});

t.test('its mean scores are those of the boards, with their intervals', async (t) => {
  const { body } = await app.call('GET', `/api/agents/${anna.id}`);
  for (const by of ['brier', 'log', 'relative'] as const) {
    const board = await app.call('GET', `/api/leaderboard?by=${by}`);
    const row = board.body.leaderboard.find(
      ({ user_id }: { user_id: string }) => user_id === anna.id,
    );
    const { n, value, interval } = row;
    t.same(body.performance.scores[by], { n, value, interval }, by);
  }
  const { body: none } = await app.call('GET', `/api/agents/${free.id}`);
  t.same(none.performance.scores, { brier: null, log: null, relative: null, skill: null });
});

t.test('points by day, the best and the worst forecasts, and those that won or lost', async (t) => {
  const path = `/api/agents/${anna.id}`;
  const { body } = await app.call('GET', `${path}/points`);
  const { body: all } = await app.call('GET', `${path}/predictions?limit=100`);
  const nets: number[] = all.predictions.flatMap((one: { score: { net: number } | null }) =>
    one.score === null ? [] : [one.score.net],
  );
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  t.equal(sum(pluck(body.days, 'net') as number[]), sum(nets));
  t.equal(sum(pluck(body.days, 'resolved') as number[]), 12);
  t.same(pluck(body.best, 'net'), nets.toSorted((a, b) => b - a).slice(0, 5));
  const lost = nets.filter((net) => net < 0);
  t.same(pluck(body.worst, 'net'), lost.toSorted((a, b) => a - b).slice(0, 5));
  for (const [result, wanted] of [
    ['won', nets.filter((net) => net > 0)],
    ['lost', lost],
  ] as const) {
    const found = await app.call('GET', `${path}/predictions?result=${result}&limit=100`);
    t.equal(found.body.total, wanted.length);
    t.same(pluck(pluck(found.body.predictions, 'score') as { net: number }[], 'net'), wanted);
  }
  t.equal((await app.call('GET', `${path}/predictions?result=drawn`)).status, 400);
  const empty = await app.call('GET', `/api/agents/${free.id}/points`);
  t.same(empty.body, { days: [], best: [], worst: [] });
  for (const id of ['nobody', '01890000-0000-7000-8000-000000000000']) {
    t.equal((await app.call('GET', `/api/agents/${id}/points`)).body.code, 'AGENT_NOT_FOUND');
  }
});

t.test(
  'everybody reads the predictions of an agent with their scores, but not the reasoning',
  async (t) => {
    const path = `/api/agents/${anna.id}/predictions`;
    const { body: profile } = await app.call('GET', `/api/agents/${anna.id}`);
    t.equal(profile.agent.predictions_url, path);
    const own = (await app.call('GET', '/api/me/predictions?limit=100', { key: anna.key })).body;
    const { status, body } = await app.call('GET', `${path}?limit=100`);
    t.equal(status, 200);
    t.match(body, { total: 13, next_cursor: null, brier_convention: /one-term/ });
    const hidden = ['reasoning', 'citations', 'prior_basis', 'revision_reason', 'hidden'];
    const shownOf = (row: Readonly<Record<string, unknown>>) =>
      Object.fromEntries(Object.entries(row).filter(([name]) => !hidden.includes(name)));
    const outcomes = [null, ...happened.toReversed()];
    t.same(
      body.predictions,
      own.predictions.map((row: Readonly<Record<string, unknown>>, n: number) => ({
        ...shownOf(row),
        outcome: outcomes[n],
        correct_options: null,
        outcome_value: null,
      })),
    );
    t.match(body.predictions[0], { question_status: 'open', outcome: null, score: null });
    t.match(body.predictions[1], { outcome: false, score: { forecast: 0.6, net: 36 } });
    const first = await app.call('GET', `${path}?limit=5`);
    const second = await app.call('GET', `${path}?limit=5&cursor=${first.body.next_cursor}`);
    const pages = [...first.body.predictions, ...second.body.predictions];
    t.same(pages, body.predictions.slice(0, 10));
    const { prediction_id } = body.predictions[3];
    const because = { admin: true, body: { reason: 'Advertising, reported by two readers.' } };
    await app.call('POST', `/api/admin/predictions/${prediction_id}/hide`, because);
    const left = (await app.call('GET', path)).body;
    t.equal(left.total, 12);
    t.notOk(pluck(left.predictions, 'prediction_id').includes(prediction_id));
    await app.call('POST', `/api/admin/predictions/${prediction_id}/restore`, because);
    for (const id of ['01890000-0000-7000-8000-000000000000', 'nobody']) {
      const unknown = await app.call('GET', `/api/agents/${id}/predictions`);
      t.match(unknown, { status: 404, body: { code: 'AGENT_NOT_FOUND' } });
    }
  },
);

t.test('boards tell who stands where', async (t) => {
  const read = async (query: string) => (await app.call('GET', `/api/leaderboard?${query}`)).body;
  const by_points = await read('');
  t.match(by_points, { by: 'points', period: 'all', category: null, total: 2, next_cursor: null });
  t.same(by_points.entries, by_points.leaderboard);
  t.match(by_points.leaderboard[0], { rank: 1, user_id: anna.id, name: anna.name, n: 12 });
  t.equal(by_points.leaderboard[0].net, by_points.leaderboard[0].value);
  t.equal(by_points.leaderboard[0].interval, null);
  t.notMatch(JSON.stringify(by_points), free.id, 'not linked');
  const me = await app.call('GET', '/api/me', { key: anna.key });
  t.equal(by_points.leaderboard[0].points, me.body.user.points);
  t.equal(me.body.user.rank, 1);
  for (const { user_id, net, kind } of by_points.leaderboard) {
    const [entries] = await app.sql`
      select coalesce(sum(amount), 0)::integer as net
      from ledger
      where agent_id = ${user_id} and reason in ('settlement', 'reversal')`;
    t.same([net, kind], [entries?.['net'], 'agent']);
  }
  t.match(await read('kind=imported'), { total: 0, leaderboard: [] });
  for (const [by, member, best] of [
    ['accuracy', 'accuracy', anna],
    ['brier', 'brier', anna],
    ['calibration', 'ece', undefined],
  ] as const) {
    const board = await read(`by=${by}`);
    const ranks = board.leaderboard.map(({ rank }: { rank: number | null }) => rank);
    t.same(ranks.filter(Boolean), [1, 2], by);
    const own = board.leaderboard.find((row: { user_id: string }) => row.user_id === anna.id);
    t.equal(own[member], own.value);
    const in_record =
      by === 'calibration' ? me.body.performance.calibration.ece : me.body.performance[by];
    t.equal(own.value, in_record, `${by} as in the record`);
    t.ok(own.interval.low <= own.value && own.value <= own.interval.high);
    if (best !== undefined) t.match(own, { rank: 1, user_id: best.id });
  }
  const families = (await read('of=families&by=brier')).leaderboard;
  t.match(
    families.find(({ kind }: { kind: string }) => kind === 'family'),
    { rank: 1, n: 12 },
  );
  const even = { kind: 'even', rank: null, n: 12, brier: 0.25, user_id: null };
  t.match(
    families.find(({ kind }: { kind: string }) => kind === 'even'),
    even,
  );
  // The mean of one person's two agents. It is inexact, because at first only Anna had a forecast.
  const halves = shares.map((share) => (1 - (share + 0.5) / 2) ** 2);
  const family = families.find(({ kind }: { kind: string }) => kind === 'family');
  t.ok(Math.abs(family.brier - mean(halves)) < 5e-3, `${family.brier} of ${mean(halves)}`);
  for (const [name, period] of [
    ['weekly', '7d'],
    ['monthly', '30d'],
  ] as const) {
    for (const by of ['points', 'brier']) {
      const named = await read(`by=${by}&period=${name}`);
      t.same(named, await read(`by=${by}&period=${period}`), `${name} is ${period}`);
      t.equal(named.period, period);
    }
  }
  t.equal((await read('category=technology&period=7d')).leaderboard[0].n, 4);
  t.equal((await read('by=brier&category=technology')).total, 0, 'four are not enough');
});

t.test('what is no board is refused', async (t) => {
  const refused = async (query: string, code: string, path?: string) => {
    const { status, body } = await app.call('GET', `/api/leaderboard?${query}`);
    t.match({ status, code: body.code }, { status: 400, code }, query);
    if (path !== undefined) t.equal(body.fields?.[0]?.path, path, query);
  };
  await refused('by=upvotes', 'INVALID_REQUEST', 'query.by');
  await refused('by=debaters&period=weekly', 'INVALID_REQUEST', 'query.period');
  await refused('period=1d', 'INVALID_REQUEST', 'query.period');
  await refused('category=sports', 'INVALID_CATEGORY');
  await refused('limit=0', 'INVALID_REQUEST', 'query.limit');
  await refused('limit=-1', 'INVALID_REQUEST', 'query.limit');
  await refused('cursor=garbage', 'INVALID_REQUEST', 'query.cursor');
  for (const key of ['', 'inf', 'nan', '1 2', '0x10', '(5', '1e999']) {
    const cursor = Buffer.from(JSON.stringify([key, anna.id])).toString('base64url');
    const { status } = await app.call('GET', `/api/leaderboard?cursor=${cursor}`);
    t.ok(status === 400 || status === 200, `cursor ${key}: ${status}`);
  }
});

t.test('pages of a board follow each other', async (t) => {
  const first = await app.call('GET', '/api/leaderboard?limit=1&by=points');
  t.equal(first.body.leaderboard.length, 1);
  t.match(first.headers.get('link'), /by=points/);
  const cursor = first.body.next_cursor;
  const second = await app.call('GET', `/api/leaderboard?limit=1&by=points&cursor=${cursor}`);
  t.match(second.body, { total: 2, next_cursor: null });
  t.equal(second.body.leaderboard[0].user_id, bert.id);
  t.equal(second.body.leaderboard[0].rank, 2);
});

t.test('an agent lists its predictions with their scores', async (t) => {
  const seen: { id: string; question_id: string; score: { brier: number } | null }[] = [];
  let cursor = '';
  do {
    const { body } = await app.call('GET', `/api/me/predictions?limit=5${cursor}`, {
      key: anna.key,
    });
    t.equal(body.total, 13);
    seen.push(...body.predictions);
    cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`;
  } while (cursor !== '');
  t.same(pluck(seen, 'question_id'), [open_id, ...[...questions].reverse()], 'newest first');
  t.equal(seen[0]?.score, null, 'open');
  t.same(
    seen.slice(1).map(({ score }) => to(9, score?.brier ?? 9)),
    shares.map((share) => to(9, (1 - share) ** 2)).reverse(),
  );
  t.equal((await app.call('GET', '/api/me/predictions')).status, 401);
  const none = await app.call('GET', '/api/me/predictions', { key: free.key });
  t.match(none.body, { total: 0, predictions: [], next_cursor: null });
});

t.test('an export holds everything, in pages, and no secret', async (t) => {
  const hook = await app.call('POST', '/api/webhooks', {
    key: anna.key,
    body: { url: 'https://hooks.agents-at-work.net/in', events: ['question.resolved'] },
  });
  t.equal(hook.status, 201, JSON.stringify(hook.body));
  const contents: string[] = [];
  for (let i = 0; i < 23; i += 1) {
    const content = `Comment number ${i} weighs supplier evidence against inspection delays.`;
    const answer = await app.call('POST', `/api/questions/${questions[i % 12]}/comments`, {
      key: anna.key,
      body: { content },
    });
    t.equal(answer.status, 201, JSON.stringify(answer.body));
    contents.push(content);
  }
  const reason = 'The municipal register was read one day before its last correction came out.';
  const dispute = await app.call('POST', `/api/questions/${questions[3]}/dispute`, {
    key: anna.key,
    body: { reason, evidence_urls: [] },
  });
  t.equal(dispute.status, 201, JSON.stringify(dispute.body));
  const suggested = Array.from({ length: 12 }, (_, n) => `Will gauge ${n} of the river rise?`);
  for (const question of suggested) {
    const closes_at = new Date(Date.now() + 864e5).toISOString();
    const body = { question, category: 'society', closes_at };
    const answer = await app.call('POST', '/api/questions/suggest', { key: anna.key, body });
    t.equal(answer.status, 201, JSON.stringify(answer.body));
  }
  const rival = await makeAgent(app, { human: await makeHuman(app) });
  const question_id = await makeOpenQuestion(app);
  await predict(rival, question_id, 20);
  const [made] = await app.sql<{ id: string }[]>`
    select id from predictions where question_id = ${question_id}`;
  const voted = made?.id ?? '';
  const vote = await app.call('POST', `/api/predictions/${voted}/downvote`, { key: anna.key });
  t.equal(vote.status, 200, JSON.stringify(vote.body));
  const lists = ['transactions', 'predictions', 'disputes', 'comments', 'votes'];
  lists.push('suggestions', 'notifications');
  // biome-ignore lint/suspicious/noExplicitAny: rows of many shapes.
  const seen: Record<string, any[]> = Object.fromEntries(lists.map((name) => [name, []]));
  let cursor = '';
  let pages = 0;
  do {
    const { status, body } = await app.call('GET', `/api/me/export?limit=10${cursor}`, {
      key: anna.key,
    });
    t.equal(status, 200);
    t.match(body, {
      format: 'prediction-forum/agent/1',
      user: { id: anna.id },
      performance: { resolved: 12 },
      totals: { predictions: 13 },
      webhooks: [{ id: hook.body.id, events: ['question.resolved'] }],
    });
    t.notMatch(JSON.stringify(body), hook.body.secret);
    t.notMatch(JSON.stringify(body), anna.key);
    t.notMatch(JSON.stringify(body), human.email);
    for (const name of lists) seen[name]?.push(...body[name]);
    pages += 1;
    cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`;
  } while (cursor !== '');
  t.ok(pages > 2);
  const { transactions = [], predictions = [], comments = [], votes = [] } = seen;
  t.same(pluck(comments, 'content'), contents);
  t.match(votes, [{ id: voted, kind: 'prediction', value: -1 }]);
  t.match(
    seen['suggestions'],
    suggested.map((question) => ({ question, status: 'draft' })),
  );
  const listed = await app.call('GET', '/api/me/notifications?limit=100', { key: anna.key });
  t.ok(listed.body.total > 10);
  // If only one agent's notifications are listed, they do not name the agent.
  const expected = listed.body.notifications.map(({ agent: _, ...row }: { agent: object }) => row);
  t.same(seen['notifications']?.reverse(), expected);
  t.match(seen['disputes'], [{ id: dispute.body.dispute?.id, reason }]);
  t.same([votes.length, seen['disputes']?.length, seen['suggestions']?.length], [1, 1, 12]);
  for (const bad of [['x', ''], ['', null], ['end']]) {
    const made_up = Buffer.from(JSON.stringify(bad)).toString('base64url');
    const answer = await app.call('GET', `/api/me/export?cursor=${made_up}`, { key: anna.key });
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } });
  }
  const me = await app.call('GET', '/api/me', { key: anna.key });
  t.equal(new Set(pluck(transactions, 'id')).size, transactions.length);
  const sum = transactions.reduce((total, { amount }) => total + amount, 0);
  t.equal(sum, me.body.user.points);
  t.same(pluck(predictions, 'question_id'), [...questions, open_id]);
  t.ok(predictions.every(({ reasoning }) => reasoning.includes('BOTTOM LINE')));
  const other = await app.call('GET', '/api/me/export', { key: free.key });
  t.match(other.body, { predictions: [], webhooks: [], totals: { transactions: 1 } });
  t.equal((await app.call('GET', '/api/me/export?limit=0', { key: anna.key })).status, 400);
});

t.test('another outcome moves the record and the boards', async (t) => {
  const [question_id = ''] = questions;
  const decision = { outcome: true, resolution_note: 'It was counted again.', evidence_urls: [] };
  await act(app, question_id, 'resolve', decision);
  await until('the new revision', async () => {
    const { body } = await app.call('GET', '/api/me', { key: anna.key });
    return body.performance.correct === shares.filter((share) => share > 0.5).length - 1;
  });
  await boardsRight();
  const { body } = await app.call('GET', '/api/me', { key: anna.key });
  t.equal(body.performance.resolved, 12, 'one score a prediction, of the latest revision');
});
