import { t } from 'tap';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { until } from '../../help/until.js';
import { connect } from '../../help/ws-client.js';

/** The first of a board, and the state of the process, followed on the socket. */

t.test('a leaderboard on the socket follows the one over HTTP', async (t) => {
  const app = await startApp(t);
  const socket = await connect(t, app.port);
  const topics = ['leaderboard:points', 'leaderboard:points:7d', 'leaderboard:debaters'];
  socket.send({ op: 'subscribe', id: 1, topics });
  t.match(await socket.answer(1), { op: 'subscribed', topics });
  for (const topic of topics) {
    await socket.get(topic, (frame) => frame.op === 'snapshot' && frame.topic === topic);
  }
  const human = await makeHuman(app);
  const { id } = await makeAgent(app, { human });
  const read = async () => (await app.call('GET', '/api/leaderboard?by=points')).body;
  await until('the board has the agent', async () => (await read()).total === 1);
  const topic = 'leaderboard:points';
  const newest = () => {
    const frames = socket.frames.filter((frame) => frame.topic === topic);
    const states = frames.map(({ data, set }) => (data ?? set) as Record<string, unknown>);
    return Object.assign({}, ...states) as Record<string, unknown>;
  };
  await until('the socket has the agent', () => newest()['total'] === 1);
  const { by, category, period, leaderboard, total } = await read();
  t.strictSame(newest(), { by, category, period, leaderboard, total });
  t.equal(leaderboard[0].user_id, id);
});

t.test('a board that there is not is refused', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const socket = await connect(t, app.port);
  const names = ['', 'wealth', 'points:1d', 'points:all:all', 'debaters:7d'];
  for (const [n, name] of names.entries()) {
    socket.send({ op: 'subscribe', id: n, topics: [`leaderboard:${name}`] });
    t.match(await socket.answer(n), { op: 'error', code: 'INVALID_TOPIC' }, name);
  }
});

t.test('a process that is about to end says so to those who listen', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const sockets = await Promise.all(Array.from({ length: 30 }, () => connect(t, app.port)));
  for (const socket of sockets) socket.send({ op: 'subscribe', id: 1, topics: ['system'] });
  for (const socket of sockets) {
    const snapshot = await socket.get('the snapshot', ({ op }) => op === 'snapshot');
    t.match(snapshot, { topic: 'system', data: { node: 'api-0', status: 'serving', notices: [] } });
  }
  await app.stop();
  const codes = await Promise.all(sockets.map((socket) => socket.closed()));
  t.ok(codes.every((code) => code === 4200));
  const told = sockets.filter(({ frames }) => frames.some(({ op }) => op === 'bye'));
  t.equal(told.length, sockets.length, 'with a word before');
});
