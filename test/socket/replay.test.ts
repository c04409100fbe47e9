import { t } from 'tap';
import { range, startHub } from '../help/hub.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

t.test('a subscription from an offset gets what it missed, and then what is live', async (t) => {
  const { port, publish, reads } = await startHub(t);
  publish(3, ['a']);
  publish(2, ['b']);
  publish(3, ['a', 'b']);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['a'], after: 2 });
  t.match(await socket.answer(1), {
    op: 'subscribed',
    topics: ['a'],
    head: 8,
    result: 'recovered',
    replayed: 4,
  });
  t.strictSame(socket.offsets(), [3, 6, 7, 8], 'the replay comes before the answer');
  publish(2, ['a']);
  await until('what is live', () => socket.events().length === 6);
  t.strictSame(socket.offsets(), [3, 6, 7, 8, 9, 10]);
  t.equal(reads.count, 0, 'all of it from memory');
  socket.send({ op: 'subscribe', id: 2, topics: ['b'], after: 10 });
  t.match(await socket.answer(2), { result: 'recovered', replayed: 0 });
});

t.test('what memory does not hold comes from the record', async (t) => {
  const { port, hub, publish, reads } = await startHub(t, {}, 1_001);
  hub.begin(1_001);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all', 'b'], after: 1 });
  publish(2, ['all', 'b']);
  t.match(await socket.answer(1), { result: 'recovered', replayed: 1_004 });
  t.strictSame(socket.offsets('all'), range(2, 1_003));
  t.strictSame(socket.offsets('b'), [1_002, 1_003]);
  t.equal(reads.count, 1 + 5, 'one count, five pages of 200');
});

t.test('no hole and no repeat at the seam, whatever is published meanwhile', async (t) => {
  const { port, hub, publish } = await startHub(t, { connections_ip: 1_000 }, 2_000);
  hub.begin(2_000);
  let publishing = true;
  const pump = (): void => {
    publish(3, ['all', 'a']);
    if (publishing) setImmediate(pump);
  };
  const sockets = await Promise.all(range(1, 40).map(() => connect(t, port)));
  pump();
  sockets.forEach((socket, index) => {
    socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: index * 50 });
  });
  await Promise.all(sockets.map((socket) => socket.answer(1)));
  const at = hub.head();
  await until('some more is published', () => hub.head() > at + 500);
  publishing = false;
  await until('all have all', () => sockets.every((s) => s.offsets().at(-1) === hub.head()));
  sockets.forEach((socket, index) => {
    const expected = range(index * 50 + 1, hub.head());
    if (JSON.stringify(socket.offsets()) !== JSON.stringify(expected)) {
      t.strictSame(socket.offsets(), expected, `socket ${index}`);
    }
  });
  t.pass(`${hub.head()} events each`);
});

t.test('10,000 events are replayed, 10,001 are a gap that says where they are', async (t) => {
  const { port, hub, publish } = await startHub(t, {}, 10_001);
  hub.begin(10_001);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 1 });
  t.match(await socket.answer(1), { result: 'recovered', replayed: 10_000 });
  t.strictSame(socket.offsets(), range(2, 10_001));
  const over = await connect(t, port);
  over.send({ op: 'subscribe', id: 1, topics: ['all', 'b'], after: 0 });
  t.match(await over.answer(1), { result: 'gap', replayed: 0, head: 10_001 });
  t.strictSame(
    over.frames.filter(({ op }) => op === 'gap'),
    ['all', 'b'].map((topic) => ({
      op: 'gap',
      topic,
      after: 0,
      until: 10_001,
      reason: 'expired',
      backfill: `/log?topic=${topic}&after=0`,
    })),
  );
  publish(1);
  await until('what is live', () => over.events().length === 1);
  t.strictSame(over.offsets(), [10_002], 'never a part of what was missed');
});

t.test('a replay looks back as far as the span, and no further', async (t) => {
  const { port, hub } = await startHub(t, { replay_span: 100 }, 150);
  hub.begin(150);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 50 });
  t.match(await socket.answer(1), { result: 'recovered', replayed: 100 });
  socket.send({ op: 'subscribe', id: 2, topics: ['b'], after: 49 });
  t.match(await socket.answer(2), { result: 'gap' });
});

t.test('a client that is ahead of this process gets nothing twice', async (t) => {
  const { port, publish } = await startHub(t, {}, 5);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 8 });
  socket.send({ op: 'ping', id: 2 });
  await socket.answer(2);
  publish(2);
  socket.send({ op: 'ping', id: 3 });
  await socket.answer(3);
  t.notOk(
    socket.frames.some(({ id }) => id === 1),
    'still waiting for 8',
  );
  publish(3);
  t.match(await socket.answer(1), { result: 'recovered', head: 10 });
  await until('what follows', () => socket.events().length === 2);
  t.strictSame(socket.offsets(), [9, 10]);
});

t.test('an offset that never comes is a gap', async (t) => {
  const { port } = await startHub(t, { ahead_ms: 50 }, 5);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 1_000_000 });
  t.match(await socket.answer(1), { result: 'gap', head: 5 });
});

t.test('a topic that is left during its replay stays silent', async (t) => {
  const server = await startHub(t, {}, 500);
  let release = (): void => undefined;
  server.reads.gate = new Promise((resolve) => {
    release = resolve;
  });
  server.hub.begin(500);
  const socket = await connect(t, server.port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all', 'b'], after: 0 });
  await until('the record is asked', () => server.reads.count > 0);
  socket.send({ op: 'unsubscribe', id: 2, topics: ['all'] });
  t.match(await socket.answer(2), { topics: ['all'] });
  release();
  t.match(await socket.answer(1), { topics: ['b'], result: 'recovered', replayed: 0 });
  server.publish(1, ['all', 'b']);
  await until('b', () => socket.events().length === 1);
  t.strictSame(socket.offsets('b'), [501]);
});

t.test('replays of one socket run one after the other, and the last word counts', async (t) => {
  const server = await startHub(t);
  const { port, hub, publish } = server;
  publish(300, ['a', 'b', 'c']);
  hub.begin(300);
  let release = (): void => undefined;
  server.reads.gate = new Promise((resolve) => {
    release = resolve;
  });
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['a', 'c'], after: 297 });
  socket.send({ op: 'subscribe', id: 2, topics: ['b'], after: 290 });
  socket.send({ op: 'subscribe', id: 3, topics: ['a'], after: 295 });
  socket.send({ op: 'subscribe', id: 4, topics: ['b'] });
  await until('all are read', () => hub.stats().frames_in === 4);
  t.match(await socket.answer(4), { topics: ['b'], result: 'live' }, 'live waits for nothing');
  release();
  t.match(await socket.answer(3), { topics: ['a'], replayed: 5 });
  t.match(await socket.answer(1), { topics: ['c'], replayed: 3 });
  t.match(await socket.answer(2), { topics: [] }, 'taken over by the later frame');
  t.strictSame(
    socket.frames.filter(({ op }) => op === 'subscribed').map(({ id }) => id),
    [4, 1, 2, 3],
  );
  publish(1, ['a', 'b', 'c']);
  await until('one of each', () => socket.events().length === 3 + 5 + 3);
  t.strictSame(socket.offsets('a'), range(296, 301));
  t.strictSame(socket.offsets('b'), [301]);
  t.strictSame(socket.offsets('c'), range(298, 301));
});

t.test('a record that is away fails the replay, and it can be tried again', async (t) => {
  const server = await startHub(t, {}, 50);
  server.hub.begin(50);
  server.reads.fails = true;
  const socket = await connect(t, server.port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 0 });
  t.match(await socket.answer(1), { op: 'error', code: 'UNAVAILABLE', retryable: true });
  server.publish(1);
  server.reads.fails = false;
  socket.send({ op: 'subscribe', id: 2, topics: ['all'], after: 0 });
  t.match(await socket.answer(2), { result: 'recovered', replayed: 51 });
  t.strictSame(socket.offsets(), range(1, 51), 'the failed one left nothing live');
});

t.test('a client that goes away during a replay costs nothing more', async (t) => {
  const server = await startHub(t, {}, 5_000);
  let release = (): void => undefined;
  server.reads.gate = new Promise((resolve) => {
    release = resolve;
  });
  server.hub.begin(5_000);
  const socket = await connect(t, server.port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 0 });
  await until('the record is asked', () => server.reads.count > 0);
  socket.ws.terminate();
  await until('it is gone', () => server.hub.stats().sockets === 0);
  const before = server.reads.count;
  release();
  const next = await connect(t, server.port);
  next.send({ op: 'subscribe', id: 1, topics: ['all'], after: 4_999 });
  await next.answer(1);
  t.ok(server.reads.count - before <= 3, 'only the reads of the second socket');
  t.strictSame(server.logged, []);
});
