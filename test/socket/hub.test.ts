import { t } from 'tap';
import { range, startHub } from '../help/hub.js';
import { startStopwatch } from '../help/stopwatch.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

t.test('a socket is welcomed with its limits and where the log stands', async (t) => {
  const { port } = await startHub(t, {}, 7);
  const socket = await connect(t, port);
  const welcome = await socket.get('welcome', ({ op }) => op === 'welcome');
  t.equal(socket.frames[0], welcome, 'it is the first frame');
  t.match(welcome, {
    op: 'welcome',
    session: /^[\w-]{12}$/,
    node: 'test',
    as: 'anonymous',
    head: 7,
    oldest: 1,
    tick_ms: 15_000,
    limits: {
      frames_per_s: 20,
      frames_burst: 100,
      frame_bytes: 16_384,
      topics: 20,
      connections: 200,
    },
  });
  const told_ms = Date.parse(String(welcome.time));
  t.ok(told_ms <= Date.now() && told_ms > Date.now() - 60_000);
});

t.test('events come to those who subscribed, in order, once for each topic', async (t) => {
  const { port, publish } = await startHub(t, {}, 3);
  const both = await connect(t, port);
  const one = await connect(t, port);
  const none = await connect(t, port);
  both.send({ op: 'subscribe', id: 1, topics: ['a', 'b'] });
  one.send({ op: 'subscribe', id: 'x', topics: ['b', 'b'] });
  none.send({ op: 'subscribe', id: 1, topics: ['c'] });
  t.strictSame(await both.answer(1), {
    op: 'subscribed',
    id: 1,
    topics: ['a', 'b'],
    head: 3,
    result: 'live',
    replayed: 0,
  });
  t.strictSame((await one.answer('x')).topics, ['b'], 'a topic named twice counts once');
  await none.answer(1);
  publish(2, ['a', 'b']);
  publish(1, ['a']);
  publish(1, ['b']);
  publish(1, ['c']);
  await until('all have come', () => none.events().length === 1);
  await until('all have come', () => both.events().length === 6);
  t.strictSame(both.offsets('a'), [4, 5, 6]);
  t.strictSame(both.offsets('b'), [4, 5, 7]);
  t.strictSame(one.offsets(), [4, 5, 7]);
  t.strictSame(none.offsets(), [8]);
  t.strictSame(one.events()[0], {
    op: 'event',
    topic: 'b',
    offset: 4,
    prev: 0,
    id: 'id-4',
    event: 'test',
    data: { n: 4 },
    timestamp: 'now',
  });
});

t.test('a topic that was left is silent, and the others go on', async (t) => {
  const { port, publish, hub } = await startHub(t);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['a', 'b'] });
  await socket.answer(1);
  publish(1, ['a', 'b']);
  socket.send({ op: 'unsubscribe', id: 2, topics: ['a', 'never'] });
  t.strictSame(await socket.answer(2), { op: 'unsubscribed', id: 2, topics: ['a'] });
  publish(1, ['a', 'b']);
  await until('both of b', () => socket.events('b').length === 2);
  t.strictSame(socket.offsets('a'), [1]);
  t.equal(hub.stats().topics, 1);
  socket.ws.close();
  await until('nobody listens', () => hub.stats().topics === 0 && hub.stats().sockets === 0);
  publish(1, ['a', 'b']);
});

t.test('a thousand topics of one socket and a hundred sockets of one topic', async (t) => {
  const { port, publish } = await startHub(t);
  const many = await connect(t, port, { headers: { 'x-api-key': 'key-a' } });
  const labels = range(1, 1_000).map((n) => `t:${n}`);
  many.send({ op: 'subscribe', id: 1, topics: labels });
  await many.answer(1);
  const crowd = await Promise.all(range(1, 100).map(() => connect(t, port)));
  for (const socket of crowd) socket.send({ op: 'subscribe', id: 1, topics: ['t:500'] });
  await Promise.all(crowd.map((socket) => socket.answer(1)));
  for (const label of labels) publish(1, [label]);
  await until('one of each', () => many.events().length === 1_000);
  t.strictSame(many.offsets(), range(1, 1_000));
  await until('one each', () => crowd.every((socket) => socket.events().length === 1));
  t.ok(crowd.every((socket) => socket.offsets()[0] === 500));
});

t.test('an application ping is answered with a pong', async (t) => {
  const { port } = await startHub(t, {}, 5);
  const socket = await connect(t, port);
  socket.send({ op: 'ping', id: 9 });
  t.match(await socket.answer(9), { op: 'pong', id: 9, head: 5, time: /^\d{4}-/ });
});

t.test('ticks prove that a silent socket is alive, and how far the log is', async (t) => {
  const { port, publish } = await startHub(t, { tick_ms: 100 });
  const socket = await connect(t, port);
  await socket.get('a tick', ({ op }) => op === 'tick');
  publish(4, ['elsewhere']);
  const tick = await socket.get('a later tick', ({ op, head }) => op === 'tick' && head === 4);
  t.strictSame(Object.keys(tick), ['op', 'time', 'head', 'heads']);
  t.equal(socket.frames[0]?.op, 'welcome');
});

t.test('draining tells every socket when to come back and lets nobody in', async (t) => {
  const { port, hub, publish } = await startHub(t, { drain_ms: 300 });
  const sockets = await Promise.all(range(1, 60).map(() => connect(t, port)));
  const [first] = sockets;
  first?.send({ op: 'subscribe', id: 1, topics: ['all'] });
  await first?.answer(1);
  publish(3);
  const readWatch = startStopwatch();
  await hub.drain();
  t.ok(readWatch() < 1_000, 'within its bound');
  const codes = await Promise.all(sockets.map((socket) => socket.closed()));
  t.ok(codes.every((code) => code === 4200));
  t.strictSame(first?.offsets(), [1, 2, 3], 'what was on its way has arrived');
  t.match(first?.frames.at(-1), { op: 'bye', code: 4200, reason: 'draining', spread_ms: 300 });
  const late = await connect(t, port);
  t.equal(await late.closed(), 4200);
  t.equal(late.frames[0]?.op, 'bye');
  t.equal(hub.stats().sockets, 0);
});

t.test('a socket that has reached its age is asked to connect again', async (t) => {
  const { port } = await startHub(t, { lifetime_ms: 200 });
  const socket = await connect(t, port);
  socket.send({ op: 'ping' });
  t.equal(await socket.closed(), 4202);
  t.match(socket.frames.at(-1), { op: 'bye', code: 4202 });
});

t.test('a hole in the log itself is told to those who listened', async (t) => {
  const { port, hub, publish } = await startHub(t, {}, 2);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all', 'a b'] });
  await socket.answer(1);
  const topics = [{ topic: 'all', label: 'all' }];
  hub.publish([{ offset: 6, id: 'six', topics, body: '{"event":"test"}' }]);
  await until('the event', () => socket.events().length === 1);
  const gaps = socket.frames.filter(({ op }) => op === 'gap');
  t.match(gaps, [
    { topic: 'all', after: 2, reason: 'expired', backfill: '/log?topic=all&after=2' },
    { topic: 'a b', after: 2 },
  ]);
  t.equal(socket.frames.at(-1)?.op, 'event', 'the gap comes before what follows it');
  hub.publish([{ offset: 6, id: 'six', topics, body: '{"event":"test"}' }]);
  hub.publish([{ offset: 7, id: 'seven', topics, body: '{"event":"test"}' }]);
  await until('the next event', () => socket.offsets().includes(7));
  t.strictSame(socket.offsets(), [6, 7], 'an offset that has been is not published again');
  publish(0);
});

t.test('sockets of a caller can be closed from outside, and only those', async (t) => {
  const { port, hub } = await startHub(t);
  const headers = { 'x-api-key': 'key-a' };
  const ours = [await connect(t, port, { headers }), await connect(t, port, { headers })];
  const other = await connect(t, port, { headers: { 'x-api-key': 'key-b' } });
  const count = hub.closeWhere({
    matches: (caller) => 'id' in caller && caller.id === 'a',
    code: 4001,
    reason: 'gone',
  });
  t.equal(count, 2);
  t.strictSame(await Promise.all(ours.map((socket) => socket.closed())), [4001, 4001]);
  other.send({ op: 'ping', id: 1 });
  await other.answer(1);
  t.equal(hub.stats().sockets, 1);
  t.equal(hub.stats().closed[4001], 2);
});
