import { type Test, t } from 'tap';
import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import { makeApiKey } from '../../../src/features/accounts/index.js';
import { hashState } from '../../../src/socket/states.js';
import { startApp, type TestApp } from '../../help/app.js';
import { consensusBySql } from '../../help/consensus-sql.js';
import { startLoad } from '../../help/load.js';
import { until } from '../../help/until.js';
import { type Client, connect } from '../../help/ws-client.js';

/** The consensus as clients read it and follow it, while agents predict. */

const options = ['Rises', 'Stays', 'Falls'];
const optionsOf = (n: number): readonly string[] => (n === 2 ? options : []);
const questions = [0, 1, 2].map((n) => ({ id: questionId(n), options: optionsOf(n) }));

interface World {
  readonly app: TestApp;
  readonly agents: readonly { readonly id: string; readonly key: string }[];
}

const startWorld = async (t: Test): Promise<World> => {
  const app = await startApp(t);
  const keys = Array.from({ length: 60 }, makeApiKey);
  await seed(app.sql, { keys, questions: questions.length, optionsOf });
  return { app, agents: keys.map((key, n) => ({ id: agentId(n), key })) };
};

const read = async (app: TestApp, id: string): Promise<Record<string, unknown>> =>
  (await app.call('GET', `/api/questions/${id}/consensus`)).body;

const placed = (app: TestApp, count: number) =>
  until('the log has all of them', async () => {
    const [row] = await app.sql<{ total: number }[]>`
      select sum(prediction_count)::integer as total from question_counts`;
    return row?.total === count;
  });

/** What a client has put together of snapshots and deltas; throws where they do not fit. */
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

const without = ({ offset: _, updated_at: __, ...rest }: Record<string, unknown>) => rest;

t.test('while agents predict and clients read, all say what SQL says', async (t) => {
  const { app, agents } = await startWorld(t);
  const socket = await connect(t, app.port);
  const topics = questions.map(({ id }) => `consensus:${id}`);
  socket.send({ op: 'subscribe', id: 1, topics });
  t.match(await socket.answer(1), { op: 'subscribed', topics });
  const load = startLoad({ url: app.url, agents, questions, clients: 12 });
  for (let n = 0; load.acknowledged.length < 150; n += 1) {
    const found = await read(app, questionId(n % 3));
    t.ok(typeof found['total_predictions'] === 'number');
  }
  await load.reach(agents.length * questions.length);
  await load.stop();
  t.same(load.odd, []);
  await placed(app, agents.length * questions.length);

  const wanted = await consensusBySql(app.sql);
  const late = await startApp(t, { stores: app.stores, roles: ['api'] });
  for (const [n, { id }] of questions.entries()) {
    const topic = topics[n] ?? '';
    const found = await until('the last one is counted', async () => {
      const now = await read(app, id);
      return now['total_predictions'] === agents.length ? now : undefined;
    });
    t.strictSame(without(found), wanted.get(id));
    t.strictSame((await app.call('GET', `/api/questions/${id}`)).body.consensus, found);
    t.strictSame(await read(late, id), found, 'a process that was not there says the same');
    await until('the newest delta', () => putTogether(socket, topic).version === found['offset']);
    t.strictSame(putTogether(socket, topic).state, found);
  }
});

t.test('what is hidden counts on, and a void question shows what it was', async (t) => {
  const { app, agents } = await startWorld(t);
  const some = questions.slice(0, 1);
  const load = startLoad({ url: app.url, agents: agents.slice(0, 10), questions: some });
  await load.reach(10);
  await load.stop();
  await placed(app, 10);
  const id = questionId(0);
  const before = await until('the consensus of ten', async () => {
    const now = await read(app, id);
    return now['total_predictions'] === 10 ? now : undefined;
  });
  const { prediction_id } = load.acknowledged[0] ?? { prediction_id: '' };
  const hidden = await app.call('POST', `/api/admin/predictions/${prediction_id}/hide`, {
    admin: true,
    body: { reason: 'It quotes a private letter.' },
  });
  t.equal(hidden.status, 200);
  const voided = await app.call('POST', `/api/admin/questions/${id}/void`, {
    admin: true,
    body: { resolution_note: 'It was asked in error.' },
  });
  t.equal(voided.status, 202);
  const late = await startApp(t, { stores: app.stores, roles: ['api'] });
  t.strictSame(await read(app, id), before);
  t.strictSame(await read(late, id), before);
});

t.test('a draft has a consensus for admins only, and none to follow', async (t) => {
  const { app } = await startWorld(t);
  const made = await app.call('POST', '/api/admin/questions', {
    admin: true,
    body: {
      question: 'Will the second bridge be open to traffic before the winter?',
      category: 'society',
      closes_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
    },
  });
  const { id } = made.body.question;
  const path = `/api/questions/${id}/consensus`;
  const socket = await connect(t, app.port);
  socket.send({ op: 'subscribe', id: 1, topics: [`consensus:${id}`] });
  await socket.answer(1);
  t.equal((await app.call('GET', path)).status, 404);
  const shown = await app.call('GET', path, { admin: true });
  t.match(shown.body, { total_predictions: 0, effective_families: 0, extremized: null, offset: 0 });
  t.equal((await app.call('GET', path)).status, 404, 'also after an admin has asked');
  await app.call('POST', `/api/admin/questions/${id}/publish`, { admin: true, body: {} });
  const snapshot = await socket.get('the snapshot', ({ op }) => op === 'snapshot');
  t.match(snapshot, { topic: `consensus:${id}`, version: 0, data: { total_predictions: 0 } });
  t.equal((await app.call('GET', path)).status, 200);
});
