import type { Test } from 'tap';
import { type HubServer, range, startHub } from '../help/hub.js';
import { pluck } from '../help/pluck.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Client, connect, type Frame } from '../help/ws-client.js';
import { makeRawFrame, openRaw } from './raw-ws.js';

t.test('a subscription from an offset gets what it missed, and then what is live', async (t) => {
  const { port, publish, reads } = await startHub(t);
  publish(3, ['a']);
  publish(2, ['b']);
  publish(3, ['a', 'b']);
  const socket = await connect(t, port);
  t.match(await socket.subscribe(['a'], { after: 2 }), {
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
  t.match(await socket.subscribe(['b'], { after: 10 }), { result: 'recovered', replayed: 0 });
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

t.test('10,000 events are replayed, 10,001 are a gap that says where they are', async (t) => {
  const { port, hub, publish } = await startHub(t, {}, 10_001);
  hub.begin(10_001);
  const socket = await connect(t, port);
  t.match(await socket.subscribe(['all'], { after: 1 }), { result: 'recovered', replayed: 10_000 });
  t.strictSame(socket.offsets(), range(2, 10_001));
  const over = await connect(t, port);
  t.match(await over.subscribe(['all', 'b'], { after: 0 }), {
    result: 'gap',
    replayed: 0,
    head: 10_001,
  });
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
  t.match(await socket.subscribe(['all'], { after: 50 }), { result: 'recovered', replayed: 100 });
  t.match(await socket.subscribe(['b'], { after: 49 }), { result: 'gap' });
});

t.test('a client that is ahead of this process gets nothing twice', async (t) => {
  const { port, publish } = await startHub(t, {}, 5);
  const socket = await connect(t, port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 8 });
  await socket.ask({ op: 'ping' });
  publish(2);
  await socket.ask({ op: 'ping' });
  t.notOk(
    socket.frames.some(({ id }) => id === 1),
    'still waiting for 8',
  );
  publish(3);
  t.match(await socket.answer(1), { result: 'recovered', head: 10 });
  await until('what follows', () => socket.events().length === 2);
  t.strictSame(socket.offsets(), [9, 10]);
});

t.test('a topic that is left during its replay stays silent', async (t) => {
  const server = await startHub(t, {}, 500);
  const release = server.holdReads();
  server.hub.begin(500);
  const socket = await connect(t, server.port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all', 'b'], after: 0 });
  await until('the record is asked', () => server.reads.count > 0);
  t.match(await socket.ask({ op: 'unsubscribe', topics: ['all'] }), { topics: ['all'] });
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
  const release = server.holdReads();
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
  const subscribed = socket.frames.filter(({ op }) => op === 'subscribed');
  t.strictSame(pluck(subscribed, 'id'), [4, 1, 2, 3]);
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
  t.match(await socket.subscribe(['all'], { after: 0 }), {
    op: 'error',
    code: 'UNAVAILABLE',
    retryable: true,
  });
  server.publish(1);
  server.reads.fails = false;
  t.match(await socket.subscribe(['all'], { after: 0 }), { result: 'recovered', replayed: 51 });
  t.strictSame(socket.offsets(), range(1, 51), 'the failed one left nothing live');
});

t.test('a client that goes away during a replay costs nothing more', async (t) => {
  const server = await startHub(t, {}, 5_000);
  const release = server.holdReads();
  server.hub.begin(5_000);
  const socket = await connect(t, server.port);
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 0 });
  await until('the record is asked', () => server.reads.count > 0);
  socket.ws.terminate();
  await until('it is gone', () => server.hub.stats().sockets === 0);
  const before = server.reads.count;
  release();
  const next = await connect(t, server.port);
  await next.subscribe(['all'], { after: 4_999 });
  t.ok(server.reads.count - before <= 3, 'only the reads of the second socket');
  t.strictSame(server.logged, []);
});

/**
 * `prev` is the offset of the previous event on the topic that passes the filter, whichever way
 * that event arrived. These tests compare `prev` with the record.
 */

type Odd = boolean | undefined;

const isOn = ({ record }: HubServer, topic: string, odd: Odd) => {
  const wanted = record.filter(
    (p) =>
      p.topics.some((on) => on.topic === topic) &&
      (odd === undefined || (p.offset % 2 === 1) === odd),
  );
  return wanted.map(({ offset }) => offset);
};

/** Checks that each frame names its predecessor in the record. */
const checkPrevs = (
  t: Test,
  server: HubServer,
  { frames, topic, odd }: { frames: readonly Frame[]; topic: string; odd?: Odd },
) => {
  const offsets = [0, ...isOn(server, topic, odd)];
  const wrong = frames.filter(({ offset, prev }) => {
    const at = offsets.indexOf(offset as number);
    return at < 1 || offsets[at - 1] !== prev;
  });
  t.strictSame(wrong.slice(0, 3), [], `${frames.length} events of ${topic}`);
};

t.test('the event before is named live, in replays and after a restart', async (t) => {
  const server = await startHub(t);
  const { port, hub, publish } = server;
  const topics = [['a', 'b'], ['a'], ['c'], ['b'], ['a', 'c'], ['c']];
  const publishSome = (from: number, to: number): void => {
    for (const n of range(from, to)) publish(1, topics[(n * 7) % topics.length]);
  };
  publishSome(1, 50);
  const early = await connect(t, port);
  await early.subscribe(['a', 'b']);
  publishSome(51, 80);
  // As after a restart, when nothing is in memory.
  hub.begin(80);
  const live = await connect(t, port);
  const past = await connect(t, port);
  const filtered = await connect(t, port);
  t.match(await live.subscribe(['a', 'b', 'never']), { result: 'live', replayed: 0 });
  t.match(await past.subscribe(['a', 'b'], { after: 33 }), { result: 'recovered' });
  t.match(await filtered.subscribe(['a', 'b'], { after: 21, filter: { odd: true } }), {
    result: 'recovered',
    filter: { odd: true },
  });
  publishSome(81, 120);
  publish(1, ['never']);
  await until('the last', () => live.offsets('never').length === 1);
  for (const topic of ['a', 'b']) {
    const all = isOn(server, topic, undefined);
    const odd = isOn(server, topic, true);
    const expected: [Client, number[], Odd][] = [
      [early, all.filter((offset) => offset > 50), undefined],
      [live, all.filter((offset) => offset > 80), undefined],
      [past, all.filter((offset) => offset > 33), undefined],
      [filtered, odd.filter((offset) => offset > 21), true],
    ];
    for (const [client, offsets, wanted] of expected) {
      await until('all have come', () => client.offsets(topic).length === offsets.length);
      t.strictSame(client.offsets(topic), offsets);
      checkPrevs(t, server, { frames: client.events(topic), topic, odd: wanted });
    }
  }
  t.equal(live.events('never')[0]?.prev, 0, 'there was none');
});

t.test('no hole, no repeat, whatever is published and however slowly it is read', async (t) => {
  const limits = { connections_ip: 1_000, backpressure_bytes: 20_000, unread_ms: 60_000 };
  const server = await startHub(t, limits, 1_000);
  const { port, hub, publish } = server;
  hub.begin(1_000);
  let publishing = true;
  const pad = `{"event":"test","data":{"pad":"${'x'.repeat(2_000)}"},"timestamp":"now"}`;
  const pump = async (): Promise<void> => {
    while (publishing) {
      publish(2, ['all', `t:${hub.head() % 9}`], pad);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const sockets = await Promise.all(range(1, 18).map(() => connect(t, port)));
  const pumped = pump();
  const wishes = sockets.map((_, n) => ({
    topics: ['all', `t:${n % 9}`],
    ...(n % 3 === 0 ? { after: n * 50 } : n % 3 === 1 ? { last: 20 } : {}),
    ...(n % 2 === 0 ? {} : { filter: { odd: n % 4 === 1 } }),
  }));
  await Promise.all(sockets.map((socket, n) => socket.ask({ op: 'subscribe', ...wishes[n] })));
  sockets[4]?.pause();
  await until('somebody is slow', () => hub.stats().slow > 0);
  publishing = false;
  await pumped;
  sockets[4]?.resume();
  publish(2);
  for (const [n, socket] of sockets.entries()) {
    const odd = n % 2 === 0 ? undefined : n % 4 === 1;
    const newest = isOn(server, 'all', odd).at(-1);
    await until('all has come', () => socket.offsets('all').at(-1) === newest);
    for (const topic of ['all', `t:${n % 9}`]) {
      const frames = socket.events(topic);
      checkPrevs(t, server, { frames, topic, odd });
      const first = frames[0]?.offset as number;
      const { after = first - 1 } = wishes[n] as { after?: number };
      const due = isOn(server, topic, odd).filter((offset) => offset > after);
      const is_same = JSON.stringify(socket.offsets(topic)) === JSON.stringify(due);
      t.ok(is_same, `socket ${n}: no hole and no repeat`);
    }
  }
  t.equal(hub.stats().sockets, 18, 'nobody was sent away');
});

t.test('many subscribers ask the record once', async (t) => {
  const server = await startHub(t, { connections_ip: 1_000 }, 60);
  const { port, hub, reads, publish } = server;
  hub.begin(60);
  const sockets = await Promise.all(range(1, 100).map(() => connect(t, port)));
  await Promise.all(sockets.map((socket, n) => socket.subscribe([`x:${n}`, 'all'])));
  t.ok(reads.newest < 100, `${reads.newest} questions`);
  publish(1, ['all']);
  await until('all have it', () => sockets.every((socket) => socket.events().length === 1));
  t.ok(sockets.every((socket) => socket.events()[0]?.prev === 60));
});

t.test('a subscription fails while the record cannot say what was before', async (t) => {
  const { port, hub, reads, publish } = await startHub(t, {}, 9);
  hub.begin(9);
  reads.fails = true;
  const socket = await connect(t, port);
  t.match(await socket.subscribe(['all']), { code: 'UNAVAILABLE', retryable: true });
  const listener = await connect(t, port, { path: '/ws?token=key-a' });
  t.equal(await listener.closed(), 4100);
  publish(1, ['all']);
  const after = await connect(t, port);
  t.match(await after.subscribe(['all']), { result: 'live' }, 'it is in memory now');
  publish(1, ['all']);
  await until('the next', () => after.events().length === 1);
  t.equal(after.events()[0]?.prev, 10);
  t.equal(socket.events().length, 0, 'the failed one left nothing live');
});

t.test('equal filters share a channel, and different ones are bounded', async (t) => {
  const { port, hub, publish } = await startHub(t, { filters: 2 });
  const [one, two, three] = await Promise.all(range(1, 3).map(() => connect(t, port)));
  const ask = (socket: Client | undefined, filter: unknown) =>
    (socket as Client).subscribe(['all'], { filter });
  await ask(one, { odd: true });
  await ask(two, { odd: true, more: 1 });
  t.equal(hub.stats().channels, 1);
  await ask(three, { odd: false });
  t.equal(hub.stats().channels, 2);
  const fourth = await connect(t, port);
  t.match(await ask(fourth, { odd: true }), { result: 'live' }, 'one that is in use');
  t.match(await ask(fourth, { odd: false }), { filter: { odd: false } }, 'another one instead');
  publish(5);
  await until('all have come', () => two?.events().length === 3 && fourth.events().length === 2);
  t.strictSame(two?.offsets(), [1, 3, 5]);
  t.strictSame(fourth.offsets(), [2, 4]);
  t.strictSame(
    two?.events().map(({ prev }) => prev),
    [0, 1, 3],
  );
  const { port: narrow } = await startHub(t, { filters: 1 });
  const first = await connect(t, narrow);
  const second = await connect(t, narrow);
  await ask(first, { odd: true });
  t.match(await ask(second, { odd: false }), { code: 'TOO_MANY_FILTERS' });
});

t.test('the newest so many events can be asked for', async (t) => {
  const { port, hub, publish } = await startHub(t);
  publish(30, ['a']);
  publish(30, ['b']);
  const asked = async (frame: Record<string, unknown>) => {
    const socket = await connect(t, port);
    const { result, replayed } = await socket.ask({ op: 'subscribe', ...frame });
    t.equal(result, 'recovered');
    t.equal(replayed, socket.events().length);
    return socket.offsets();
  };
  for (const begins of [false, true]) {
    if (begins) hub.begin(60);
    t.strictSame(await asked({ topics: ['a'], last: 5 }), range(26, 30));
    t.strictSame(await asked({ topics: ['a', 'b'], last: 32 }), range(29, 60));
    t.strictSame(await asked({ topics: ['a'], last: 50 }), range(1, 30), 'there are no more');
    t.strictSame(await asked({ topics: ['c'], last: 50 }), []);
    t.strictSame(await asked({ topics: ['b'], last: 2, filter: { odd: true } }), [57, 59]);
  }
});

t.test('a tick names the newest event of each topic', async (t) => {
  const server = await startHub(t, { tick_ms: 30 }, 40);
  const { port, hub, publish } = server;
  publish(3, ['a', 'me:x']);
  publish(4, ['b']);
  hub.begin(47);
  const socket = await connect(t, port, { headers: { 'x-api-key': 'key-x' } });
  await socket.subscribe(['a', 'b', 'me', 'none']);
  await socket.subscribe(['all'], { filter: { odd: true } });
  const at = (heads: Record<string, number>) => (frame: Frame) =>
    frame.op === 'tick' && JSON.stringify(frame.heads) === JSON.stringify(heads);
  await socket.get('a tick', at({ a: 43, b: 47, me: 43, none: 0, all: 39 }));
  publish(2, ['b', 'all']);
  await socket.get('a later tick', at({ a: 43, b: 49, me: 43, none: 0, all: 49 }));
  socket.send({ op: 'unsubscribe', id: 1, topics: ['a', 'me', 'none'] });
  await socket.get('one of what is left', at({ b: 49, all: 49 }));
});

t.test('an offset that this log never had is a gap of another epoch', async (t) => {
  const { port, publish } = await startHub(t, { ahead_ms: 50 }, 5);
  const socket = await connect(t, port);
  t.match(await socket.subscribe(['all'], { after: 9_000 }), { result: 'gap', head: 5 });
  t.match(
    socket.frames.find(({ op }) => op === 'gap'),
    { topic: 'all', after: 9_000, until: 5, reason: 'epoch', backfill: /after=9000/ },
  );
  publish(1);
  await until('what is live', () => socket.events().length === 1);
  t.equal(socket.events()[0]?.prev, 5);
});

const holdTopics = (socket: Client, from: number, to: number) =>
  socket.subscribe(range(from, to).map((n) => `t:${n}`));

t.test('an anonymous socket may hold 20 topics', async (t) => {
  const { port, hub } = await startHub(t);
  const socket = await connect(t, port);
  t.match(await holdTopics(socket, 1, 21), { op: 'error', code: 'TOO_MANY_TOPICS' });
  t.equal(hub.stats().topics, 0, 'all of a frame or nothing');
  t.match(await holdTopics(socket, 1, 20), { op: 'subscribed' });
  t.match(await holdTopics(socket, 20, 20), { op: 'subscribed' }, 'one it holds already');
  t.match(await holdTopics(socket, 21, 21), { op: 'error', code: 'TOO_MANY_TOPICS' });
  await socket.ask({ op: 'unsubscribe', topics: ['t:1'] });
  t.match(await holdTopics(socket, 21, 21), { op: 'subscribed' });
});

t.test('a socket with a key may hold 1,000 topics', async (t) => {
  const { port } = await startHub(t);
  const socket = await connect(t, port, { headers: { 'x-api-key': 'key-a' } });
  t.match(await holdTopics(socket, 1, 1_001), { op: 'error', code: 'INVALID_FRAME' });
  t.match(await holdTopics(socket, 1, 1_000), { op: 'subscribed' });
  t.match(await holdTopics(socket, 1_001, 1_001), { op: 'error', code: 'TOO_MANY_TOPICS' });
});

t.test('the sockets of one key share its topics', async (t) => {
  const { port } = await startHub(t);
  const headers = { 'x-api-key': 'key-a' };
  const [one, two] = [await connect(t, port, { headers }), await connect(t, port, { headers })];
  const other = await connect(t, port, { headers: { 'x-api-key': 'key-b' } });
  t.match(await holdTopics(one, 1, 600), { op: 'subscribed' });
  t.match(await holdTopics(two, 1, 401), { op: 'error', code: 'TOO_MANY_TOPICS' });
  t.match(await holdTopics(two, 1, 400), { op: 'subscribed' });
  t.match(await holdTopics(one, 601, 601), { op: 'error', code: 'TOO_MANY_TOPICS' });
  t.match(await holdTopics(other, 1, 1_000), { op: 'subscribed' }, 'another key has its own');
  two.ws.close();
  await two.closed();
  t.match(await holdTopics(one, 601, 1_000), { op: 'subscribed' });
});

t.test('topics of a client that vanished are free soon', async (t) => {
  const { port } = await startHub(t, { alive_ms: 300, topics: 3 });
  const gone = await openRaw(port, { path: '/ws?token=key-a' });
  const topics = ['t:1', 't:2', 't:3'];
  gone.write(makeRawFrame(JSON.stringify({ op: 'subscribe', topics }), { opcode: 1 }));
  await until('it has them', () => gone.texts.some((text) => text.includes('subscribed')));
  const socket = await connect(t, port, { headers: { 'x-api-key': 'key-a' } });
  t.match(await holdTopics(socket, 1, 4), { code: 'TOO_MANY_TOPICS', retryable: false });
  t.match(await holdTopics(socket, 4, 4), { code: 'TOO_MANY_TOPICS', retryable: true });
  t.equal(await gone.closed, 1006);
  t.match(await holdTopics(socket, 4, 6), { op: 'subscribed' });
});

t.test('topics on their way count as well', async (t) => {
  const server = await startHub(t, {}, 10);
  const release = server.holdReads();
  server.hub.begin(10);
  const socket = await connect(t, server.port);
  const topics = range(1, 20).map((n) => `t:${n}`);
  socket.send({ op: 'subscribe', id: 1, topics, after: 0 });
  t.match(await holdTopics(socket, 21, 21), { op: 'error', code: 'TOO_MANY_TOPICS' });
  release();
  t.match(await socket.answer(1), { op: 'subscribed', result: 'recovered' });
});
