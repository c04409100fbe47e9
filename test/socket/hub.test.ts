import type { Test } from 'tap';
import { type HubServer, range, startHub } from '../help/hub.js';
import { pluck } from '../help/pluck.js';
import { startStopwatch } from '../help/stopwatch.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Client, connect } from '../help/ws-client.js';

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
  const time_ms = Date.parse(String(welcome.time));
  t.ok(time_ms <= Date.now() && time_ms > Date.now() - 60_000);
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
  await socket.subscribe(['a', 'b']);
  publish(1, ['a', 'b']);
  t.match(await socket.ask({ op: 'unsubscribe', topics: ['a', 'never'] }), {
    op: 'unsubscribed',
    topics: ['a'],
  });
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
  await many.subscribe(labels);
  const crowd = await Promise.all(range(1, 100).map(() => connect(t, port)));
  await Promise.all(crowd.map((socket) => socket.subscribe(['t:500'])));
  for (const label of labels) publish(1, [label]);
  await until('one of each', () => many.events().length === 1_000);
  t.strictSame(many.offsets(), range(1, 1_000));
  await until('one each', () => crowd.every((socket) => socket.events().length === 1));
  t.ok(crowd.every((socket) => socket.offsets()[0] === 500));
});

t.test('an application ping is answered with a pong', async (t) => {
  const { port } = await startHub(t, {}, 5);
  const socket = await connect(t, port);
  t.match(await socket.ask({ op: 'ping' }), { op: 'pong', head: 5, time: /^\d{4}-/ });
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
  await socket.subscribe(['all', 'a b']);
  const topics = [{ topic: 'all', label: 'all' }];
  hub.publish([{ offset: 6, id: 'six', topics, body: '{"event":"test"}' }]);
  await until('the event', () => socket.events().length === 1);
  const gaps = socket.frames.filter(({ op }) => op === 'gap');
  t.match(gaps, [
    { topic: 'all', after: 2, until: 5, reason: 'expired', backfill: '/log?topic=all&after=2' },
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
  await other.ask({ op: 'ping' });
  t.equal(hub.stats().sockets, 1);
  t.equal(hub.stats().closed[4001], 2);
});

const body = `{"event":"test","data":{"pad":"${'x'.repeat(4_000)}"},"timestamp":"now"}`;

const listen = async (t: Test, port: number): Promise<Client> => {
  const socket = await connect(t, port);
  await socket.subscribe(['all', 'b']);
  return socket;
};

/** Publishes until sockets have fallen out of the live stream this many times. */
const publishUntilSlow = ({ publish, hub }: HubServer, times: number) =>
  until('somebody is slow', () => {
    publish(100, ['all'], body);
    return hub.stats().slow === times;
  });

t.test('a slow reader misses nothing, and nobody else notices', async (t) => {
  const server = await startHub(t);
  const { port, publish, hub } = server;
  const slow = await listen(t, port);
  const quick = await listen(t, port);
  for (const times of [1, 2]) {
    slow.pause();
    await publishUntilSlow(server, times);
    publish(50, ['all', 'b'], body);
    await until('the quick one has all', () => quick.offsets().at(-1) === hub.head());
    slow.resume();
    await until('the slow one has all', () => slow.offsets('all').at(-1) === hub.head());
  }
  publish(1, ['all', 'b'], body);
  await until('both are live', () => slow.offsets('b').length === 101);
  for (const socket of [slow, quick]) {
    await until('all has come', () => socket.offsets('all').length === hub.head());
    t.strictSame(socket.offsets('all'), range(1, hub.head()));
    t.strictSame(socket.offsets('b'), quick.offsets('b'));
  }
  t.equal(hub.stats().sockets, 2);
  const others = slow.frames.filter(({ op }) => op !== 'event');
  t.strictSame(pluck(others, 'op'), ['welcome', 'subscribed'], 'it is told of nothing');
});

t.test('of a batch larger than a socket may leave unread nothing is dropped', async (t) => {
  const { port, publish, hub } = await startHub(t);
  const slow = await listen(t, port);
  slow.pause();
  publish(5_000, ['all', 'b'], body);
  t.equal(hub.stats().slow, 1);
  slow.resume();
  await until('all has come', () => slow.offsets('b').length === 5_000);
  for (const topic of ['all', 'b']) t.strictSame(slow.offsets(topic), range(1, 5_000));
  t.strictSame(
    pluck(
      slow.frames.filter(({ op }) => op !== 'event'),
      'op',
    ),
    ['welcome', 'subscribed'],
  );
});

t.test('a reader that leaves all unread is closed with 4101, and can resume', async (t) => {
  const server = await startHub(t, { unread_ms: 300 });
  const { port, publish, hub } = server;
  const stuck = await listen(t, port);
  const quick = await listen(t, port);
  stuck.pause();
  await publishUntilSlow(server, 1);
  await until('it is let go of', () => hub.stats().sockets === 1);
  t.equal(hub.stats().closed[4101], 1);
  publish(100, ['all'], body);
  const last = hub.head();
  await until('the other has all', () => quick.offsets().at(-1) === last);
  t.strictSame(quick.offsets(), range(1, last));
  stuck.resume();
  t.equal(await stuck.closed(), 4101);
  const got = stuck.offsets();
  t.strictSame(got, range(1, got.length), 'a beginning without a hole');
  t.ok(got.length < last);
  const again = await connect(t, port);
  again.send({ op: 'subscribe', id: 1, topics: ['all'], after: got.length });
  await until('the rest', () => again.offsets().at(-1) === last);
  t.strictSame([...got, ...again.offsets()], range(1, last));
});

t.test('a slow reader that is too far behind is told of the gap', async (t) => {
  const server = await startHub(t, { replay_events: 100, replay_span: 1_000 });
  const { port, publish, hub } = server;
  const slow = await listen(t, port);
  slow.pause();
  await publishUntilSlow(server, 1);
  publish(6_000, ['all', 'c'], body);
  slow.resume();
  const gap = await slow.get('the gap', ({ op }) => op === 'gap');
  const after = gap.after as number;
  t.match(gap, { topic: 'all', reason: 'slow', backfill: `/log?topic=all&after=${after}` });
  publish(2);
  await until('what is live', () => slow.offsets().at(-1) === hub.head());
  t.strictSame(slow.offsets(), [...range(1, after), hub.head() - 1, hub.head()]);
  t.match(
    slow.frames.filter(({ op }) => op === 'gap'),
    [{ topic: 'all' }, { topic: 'b', after }],
  );
});

t.test('answers that are never read end the socket', async (t) => {
  const limits = { frames_burst: 100_000, backpressure_bytes: 10_000, unread_ms: 300 };
  const { port, hub } = await startHub(t, limits);
  const socket = await connect(t, port, { headers: { 'x-api-key': 'key-a' } });
  socket.pause();
  const topics = range(1, 80).map((n) => `${n}`.padEnd(190, 'x'));
  await until('the library drops one', async () => {
    for (let i = 0; i < 20; i += 1) socket.send({ op: 'subscribe', topics });
    return hub.stats().slow === 1;
  });
  await until('it is gone', () => hub.stats().sockets === 0);
  t.equal(hub.stats().closed[4101], 1);
  t.equal(hub.stats().topics, 0);
});

t.test('a tick has the digest at its head, where the process knows it', async (t) => {
  const digestAt = (offset: number) => (offset === 4 ? 'abc' : undefined);
  const { port, publish } = await startHub(t, { tick_ms: 50 }, 3, { digestAt });
  const socket = await connect(t, port);
  const before = await socket.get('a tick', ({ op }) => op === 'tick');
  t.strictSame([before['head'], before['digest']], [3, undefined]);
  publish(1, ['elsewhere']);
  const tick = await socket.get('a later tick', ({ op, head }) => op === 'tick' && head === 4);
  t.equal(tick['digest'], 'abc');
});

t.test('a tick claims no more than has been sent', async (t) => {
  const server = await startHub(t, { tick_ms: 30 }, 500);
  const release = server.holdReads();
  server.hub.begin(500);
  const socket = await connect(t, server.port);
  await socket.get('a tick of the head', ({ op, head }) => op === 'tick' && head === 500);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 3 });
  await socket.get('a tick of the replay', ({ op, head }) => op === 'tick' && head === 3);
  t.equal((await socket.ask({ op: 'ping' })).head, 3);
  release();
  await socket.answer(1);
  const before = socket.frames.length;
  await until('a tick after it', () => socket.frames.slice(before).some(({ op }) => op === 'tick'));
  t.equal(socket.frames.filter(({ op }) => op === 'tick').at(-1)?.head, 500);
});

t.test('a replay goes at the pace of its reader', async (t) => {
  const { port, publish, hub } = await startHub(t);
  publish(4_000, ['all'], body);
  const socket = await connect(t, port);
  socket.pause();
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 0 });
  await until('the frame arrived', () => hub.stats().frames_in === 1);
  publish(50, ['all'], body);
  socket.resume();
  t.match(await socket.answer(1), { result: 'recovered' });
  await until('everything', () => socket.offsets().at(-1) === 4_050);
  t.strictSame(socket.offsets(), range(1, 4_050));
  t.equal(hub.stats().slow, 0);
  t.strictSame(socket.frames.at(-1)?.op, 'subscribed');
});

t.test('a replay that nobody reads ends with 4101', async (t) => {
  const { port, publish, hub } = await startHub(t, { unread_ms: 300 });
  publish(4_000, ['all'], body);
  const socket = await connect(t, port);
  socket.pause();
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 0 });
  await until('it is let go of', () => hub.stats().closed[4101] === 1);
  t.equal(hub.stats().sockets, 0);
});

t.test('when all together leave too much unread, newcomers wait and nobody loses', async (t) => {
  const limits = { unread_bytes: 300_000, backpressure_bytes: 200_000, unread_ms: 60_000 };
  const server = await startHub(t, limits);
  const { port, hub } = server;
  const quick = await listen(t, port);
  const slow = await Promise.all(range(1, 4).map(() => listen(t, port)));
  for (const socket of slow) socket.pause();
  await until('it is overloaded', () => {
    server.publish(20, ['all'], body);
    return hub.stats().unread_bytes > limits.unread_bytes;
  });
  const refused = await connect(t, port);
  t.equal(await refused.closed(), 4100);
  t.match(refused.frames, [{ op: 'error', code: 'UNAVAILABLE', retryable: true }]);
  server.publish(200, ['all'], body);
  t.ok(hub.stats().unread_bytes < 4 * 300_000, 'no more than a little is added');
  for (const socket of slow) socket.resume();
  for (const socket of [quick, ...slow]) {
    await until('all has come', () => socket.offsets().at(-1) === hub.head());
    t.same(socket.offsets(), range(1, hub.head()));
  }
  await until('nothing is unread', () => hub.stats().unread_bytes === 0);
  const welcome = await connect(t, port);
  t.equal((await welcome.get('welcome', () => true)).op, 'welcome');
});
