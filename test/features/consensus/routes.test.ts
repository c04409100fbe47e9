import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { hashState } from '../../../src/socket/states.js';
import { startApp, type TestApp } from '../../help/app.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { type LoadOptions, startLoad } from '../../help/load.js';
import { pluck } from '../../help/pluck.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { type Client, connect } from '../../help/ws-client.js';
import { options, without } from './world.js';

/** Consensus, charts, shifts and snapshots as clients read and follow them while agents predict. */

const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
const all_agents = 60;
const optionsOf = (n: number): readonly string[] => (n === 2 ? options : []);
const keys = Array.from({ length: all_agents + 20 }, makeApiKey);
await seed(app.sql, { keys, questions: 5, optionsOf });
const seeded = keys.map((key, n) => ({ id: agentId(n), key }));
const agents = seeded.slice(0, all_agents);
const others = seeded.slice(all_agents);
const busy = [0, 1, 2].map((n) => ({ id: questionId(n), options: optionsOf(n) }));
/** Question 3 is voided. Question 4 gets a few predictions. */
const few = (n: number) => ({ id: questionId(n), options: [] });

const kinds = ['snapshots', 'chart', 'chart.svg', 'chart.png', 'drift'];
const path = (n: number, rest: string): string => `/api/questions/${questionId(n)}/${rest}`;
const get = async (url: string, from: TestApp = app) => (await from.call('GET', url)).body;

/** The newest state, once it includes this many predictions. */
const wholeOf = (n: number, rest: string, total: number, from = app) =>
  until(`${rest} of ${total}`, async () => {
    const body = await get(path(n, rest), from);
    return body.total_predictions === total && body;
  });

const predict = async (load: Omit<LoadOptions, 'url'>, count: number) => {
  const running = startLoad({ url: app.url, ...load });
  await running.reach(count);
  await running.stop();
  return running.acknowledged;
};

/** Assembles snapshots and deltas as a client does. Throws if they do not fit together. */
const putTogether = ({ frames }: Client, topic: string) => {
  let version = -1;
  let state: Record<string, unknown> = {};
  for (const frame of frames.filter((frame) => frame.topic === topic)) {
    if (frame.op === 'snapshot') state = frame.data as Record<string, unknown>;
    else if (frame.from !== version) throw new Error(`a delta from ${frame.from} at ${version}`);
    else state = { ...state, ...(frame.set as Record<string, unknown>) };
    version = frame.version as number;
    if (frame.hash !== undefined && frame.hash !== hashState(state)) throw new Error('hash');
  }
  return { version, state };
};

t.test('while agents predict and clients read, all say what the record says', async (t) => {
  t.match(await get(path(0, 'chart')), { total_predictions: 0, moments: 0, points: [], offset: 0 });
  const socket = await connect(t, app.port);
  const topics = busy.map(({ id }) => `consensus:${id}`);
  socket.send({ op: 'subscribe', id: 1, topics });
  t.match(await socket.answer(1), { op: 'subscribed', topics });
  const load = startLoad({ url: app.url, agents, questions: busy, clients: 12 });
  for (let n = 0; load.acknowledged.length < 150; n += 1) {
    t.ok(typeof (await get(path(n % 3, 'consensus'))).total_predictions === 'number');
    const chart = await get(path(n % 3, 'chart'));
    t.ok(chart.total_predictions >= chart.moments);
  }
  await load.reach(all_agents * busy.length);
  await load.stop();
  t.same(load.odd, []);

  const late = await startApp(t, { stores: app.stores, roles: ['api'] });
  const wanted = await recomputeConsensus(app.sql);
  for (const [n, { id }] of busy.entries()) {
    const topic = topics[n] ?? '';
    const found = await wholeOf(n, 'consensus', all_agents);
    t.strictSame(without(found), wanted.get(id));
    t.strictSame((await get(`/api/questions/${id}`)).consensus, found);
    t.strictSame(await get(path(n, 'consensus'), late), found, 'a process that was not there');
    await until('the newest delta', () => putTogether(socket, topic).version === found.offset);
    t.strictSame(putTogether(socket, topic).state, found);

    const chart = await wholeOf(n, 'chart?points=1000', all_agents);
    t.strictSame(await wholeOf(n, 'chart?points=1000', all_agents, late), chart);
    const last = chart.points.at(-1);
    const { count: _, at: __, option_forecasts, ...rest } = last;
    const { option_probabilities, option_percents, ...figures } = rest;
    t.match(found, figures, 'the last point is the consensus');
    const shown = found.options ?? [];
    t.same(option_forecasts, pluck(shown, 'forecast'));
    t.same(option_percents, pluck(shown, 'percent'));
    t.same(option_probabilities, pluck(shown, 'mean_probability'));
    t.equal(chart.offset, found.offset);
    let of_families = 0;
    for (const { model_family, count, mean_probability } of found.model_breakdown) {
      const one = await get(path(n, `chart?family=${model_family}`));
      t.equal(one.total_predictions, count, model_family);
      t.equal(one.points.at(-1).mean_probability, mean_probability);
      of_families += count;
    }
    t.equal(of_families, all_agents, 'each family has a chart of its own');
    const two = await get(path(n, 'chart?points=2'));
    t.same([two.points.length, two.sampling, two.points.at(-1)], [2, 'lttb', last]);
  }
});

t.test('closing and resolving leave a snapshot each', async (t) => {
  const bodies = [{ outcome: true }, { outcome: false }, { correct_options: [options[0]] }];
  for (const n of [0, 2]) {
    const decide = (act: string, body: object) =>
      app.call('POST', `/api/admin/questions/${questionId(n)}/${act}`, { admin: true, body });
    await decide('close', {});
    t.equal((await decide('resolve', bodies[n] ?? {})).status, 202);
    const found = await until('both', async () => {
      const { snapshots } = await get(path(n, 'snapshots'));
      const ends = snapshots.filter((one: { reason: string }) => one.reason !== 'hourly');
      return ends.length === 2 && ends.reverse();
    });
    const live = await get(path(n, 'consensus'));
    const wanted = (await recomputeConsensus(app.sql)).get(questionId(n)) as object;
    for (const [at, reason] of ['closed', 'resolved'].entries()) {
      t.match(found[at], { ...wanted, offset: live.offset, reason });
    }
    const { question } = await get(`/api/questions/${questionId(n)}`);
    t.equal(found[1].taken_at, question.resolved_at);
    const newest = await get(path(n, 'snapshots?limit=1'));
    t.same([newest.snapshots.length, newest.snapshots[0]], [1, found[1]]);
    const rest = await get(path(n, `snapshots?limit=1&cursor=${newest.next_cursor}`));
    t.same(rest.snapshots, [found[0]]);
    t.equal((await wholeOf(n, 'chart', all_agents)).points.at(-1).count, all_agents);
  }
});

t.test('what is hidden counts on, and a void question shows what it was', async (t) => {
  const acknowledged = await predict({ agents: others.slice(0, 10), questions: [few(3)] }, 10);
  const before = await wholeOf(3, 'consensus', 10);
  const act = (what: string, body: object) =>
    app.call('POST', `/api/admin/${what}`, { admin: true, body });
  const hide = `predictions/${acknowledged[0]?.prediction_id}/hide`;
  t.equal((await act(hide, { reason: 'It quotes a private letter.' })).status, 200);
  const why = { resolution_note: 'It was asked in error.' };
  t.equal((await act(`questions/${questionId(3)}/void`, why)).status, 202);
  const late = await startApp(t, { stores: app.stores, roles: ['api'] });
  for (const from of [app, late]) t.strictSame(await get(path(3, 'consensus'), from), before);
});

t.test('what has not changed costs a client no body, and what has comes anew', async (t) => {
  const some = { questions: [few(4)], agents: others.slice(10, 15) };
  await predict(some, 5);
  await wholeOf(4, 'chart', 5);
  const tags = new Map<string, string>();
  const again = (kind: string) =>
    app.call('GET', path(4, kind), { headers: { 'if-none-match': tags.get(kind) ?? '' } });
  for (const kind of kinds.slice(1)) {
    const { status, headers } = await app.call('GET', path(4, kind));
    t.equal(status, 200, kind);
    tags.set(kind, headers.get('etag') ?? '');
    const same = await again(kind);
    t.same([same.status, same.body, same.headers.get('etag')], [304, '', tags.get(kind)], kind);
  }
  await predict({ ...some, agents: others.slice(10, 16), first: 5 }, 1);
  await wholeOf(4, 'chart', 6);
  for (const kind of kinds.slice(1)) t.equal((await again(kind)).status, 200, kind);
});

t.test('many questions at once, now and as they stood, without drafts', async (t) => {
  const draft = await makeOpenQuestion(app, { publish: false });
  const unknown = agentId(1);
  const ids = [questionId(2), draft, questionId(4), unknown, questionId(0)];
  const many = (more: string) => app.call('GET', `/api/consensus?ids=${ids}${more}`);
  const now = await many('');
  const own = await Promise.all([2, 4, 0].map((n) => get(path(n, 'consensus'))));
  t.same(now.body, { consensus: own, missing: [draft, unknown] });
  t.same((await many(`&at=${new Date(Date.now() + 9_000).toISOString()}`)).body, now.body);
  // A moment after half of the predictions on question 0.
  const [middle] = await app.sql<{ at: Date }[]>`
    select created_at as at from predictions
    where question_id = ${questionId(0)} order by created_at offset ${all_agents / 2} limit 1`;
  const then = await many(`&at=${middle?.at.toISOString()}`);
  const wanted = await recomputeConsensus(app.sql, undefined, middle?.at);
  t.same(
    then.body.consensus.map(without),
    [2, 4, 0].map((n) => wanted.get(questionId(n))),
  );
  t.ok(then.body.consensus[2].total_predictions < all_agents);
  const etag = now.headers.get('etag') ?? '';
  const again = await app.call('GET', `/api/consensus?ids=${ids}`, {
    headers: { 'if-none-match': etag },
  });
  t.equal(again.status, 304);
  const of = (count: number) => Array.from({ length: count }, (_, n) => agentId(n)).join(',');
  t.equal((await app.call('GET', `/api/consensus?ids=${of(100)}`)).body.missing.length, 100);
  for (const query of [`ids=${of(101)}`, 'ids=', '', 'ids=x', `ids=${of(1)}&at=yesterday`]) {
    const { status, body } = await app.call('GET', `/api/consensus?${query}`);
    t.same([status, body.code], [400, 'INVALID_REQUEST'], query.slice(0, 50));
  }
});

t.test('a question shows its newest predictions page by page', async (t) => {
  const read = (query: string) => app.call('GET', `/api/questions/${questionId(0)}${query}`);
  const all = await app.call('GET', `/api/questions/${questionId(0)}/predictions?limit=100`);
  const ids = pluck(all.body.predictions, 'id');
  const usual = await read('');
  t.same(pluck(usual.body.predictions, 'id'), ids.slice(0, 20));
  const seen: unknown[] = [];
  for (let query = '?limit=7'; query !== ''; ) {
    const { body, headers } = await read(query);
    seen.push(...pluck(body.predictions, 'id'));
    const next = `?limit=7&cursor=${body.next_cursor}`;
    query = body.next_cursor === null ? '' : next;
    t.equal(headers.get('link')?.includes(`${next}>`) ?? false, query !== '');
  }
  t.same(seen, ids);
  t.equal((await read('?limit=101')).body.predictions.length, all_agents);
  for (const wrong of ['?limit=0', '?limit=x', '?cursor=abc']) {
    t.match(await read(wrong), { status: 400, body: { code: 'INVALID_REQUEST' } }, wrong);
  }
});

t.test('what is no question, no range or no cursor is refused', async (t) => {
  for (const kind of kinds) {
    for (const id of ['nothing', agentId(1)]) {
      const { status, body } = await app.call('GET', `/api/questions/${id}/${kind}`);
      t.same([status, body.code], [404, 'QUESTION_NOT_FOUND'], `${kind} of ${id}`);
    }
  }
  const statuses = {
    400:
      'chart?points=1 chart?points=1001 chart.svg?theme=pink chart.svg?width=319 ' +
      'chart.svg?width=1201 snapshots?cursor=abc snapshots?limit=0',
    200: 'chart?points=1000 chart.svg?width=320 chart.svg?width=1200 chart.png?width=1200',
  };
  for (const [status, all] of Object.entries(statuses)) {
    for (const rest of all.split(' ')) {
      t.equal((await app.call('GET', path(4, rest))).status, Number(status), rest);
    }
  }
});

t.test('a draft is shown to admins only, and followed by nobody', async (t) => {
  const id = await makeOpenQuestion(app, { publish: false });
  const socket = await connect(t, app.port);
  socket.send({ op: 'subscribe', id: 1, topics: [`consensus:${id}`] });
  await socket.answer(1);
  for (const kind of ['consensus', ...kinds]) {
    const url = `/api/questions/${id}/${kind}`;
    t.equal((await app.call('GET', url)).status, 404);
    t.equal((await app.call('GET', url, { admin: true })).status, 200, kind);
    t.equal((await app.call('GET', url)).status, 404, 'also after an admin has asked');
  }
  const shown = await app.call('GET', `/api/questions/${id}/consensus`, { admin: true });
  t.match(shown.body, { total_predictions: 0, effective_forecasters: 0, pooled: null, offset: 0 });
  await app.call('POST', `/api/admin/questions/${id}/publish`, { admin: true, body: {} });
  const snapshot = await socket.get('the snapshot', ({ op }) => op === 'snapshot');
  t.match(snapshot, { topic: `consensus:${id}`, version: 0, data: { total_predictions: 0 } });
  t.equal((await app.call('GET', `/api/questions/${id}/consensus`)).status, 200);
});

t.test('drawing pictures as PNG is limited for each address, and 304 costs none', async (t) => {
  const limited = await startApp(t, { roles: ['api'], env: { LIMIT_PICTURES: '2' } });
  await seed(limited.sql, { keys: [makeApiKey()], questions: 1 });
  const png = (headers = {}, width = 800) =>
    limited.call('GET', path(0, `chart.png?width=${width}`), { headers });
  const first = await png();
  t.equal(first.status, 200);
  const known = { 'if-none-match': first.headers.get('etag') ?? '' };
  for (let n = 0; n < 3; n += 1) t.equal((await png(known)).status, 304);
  t.equal((await png({}, 400)).status, 200);
  const third = await png({}, 401);
  t.same([third.status, third.body.code], [429, 'RATE_LIMITED']);
  t.match(third.headers.get('retry-after'), /^[1-9]\d*$/);
  t.equal((await limited.call('GET', path(0, 'chart.svg'))).status, 200);
  const { limits } = await get('/api/limits', limited);
  const own = limits.find(({ name }: { name: string }) => name === 'pictures');
  t.match(own, { setting: 'LIMIT_PICTURES', limit: 2, left: 0, per: 'address' });
});
