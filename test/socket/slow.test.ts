import { type Test, t } from 'tap';
import { type HubServer, range, startHub } from '../help/hub.js';
import { until } from '../help/until.js';
import { type Client, connect } from '../help/ws-client.js';

const body = `{"event":"test","data":{"pad":"${'x'.repeat(4_000)}"},"timestamp":"now"}`;

const listen = async (t: Test, port: number): Promise<Client> => {
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all', 'b'] });
  await socket.answer(1);
  return socket;
};

/** Publishes until somebody has left the live stream. */
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
  t.strictSame(
    slow.frames.filter(({ op }) => op !== 'event').map(({ op }) => op),
    ['welcome', 'subscribed'],
    'it is told of nothing',
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

t.test('a tick claims no more than has been sent', async (t) => {
  const server = await startHub(t, { tick_ms: 30 }, 500);
  let release = (): void => undefined;
  server.reads.gate = new Promise((resolve) => {
    release = resolve;
  });
  server.hub.begin(500);
  const socket = await connect(t, server.port);
  await socket.get('a tick of the head', ({ op, head }) => op === 'tick' && head === 500);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 3 });
  await socket.get('a tick of the replay', ({ op, head }) => op === 'tick' && head === 3);
  socket.send({ op: 'ping', id: 2 });
  t.equal((await socket.answer(2)).head, 3);
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
