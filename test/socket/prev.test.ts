import { type Test, t } from 'tap';
import { type HubServer, range, startHub } from '../help/hub.js';
import { until } from '../help/until.js';
import { type Client, connect, type Frame } from '../help/ws-client.js';

/**
 * `prev` is the offset of the event before on the same topic that the filter lets pass, whatever
 * way the event came: it is compared with the record.
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

/** Each frame names the one before it in the record, and follows on the frame before it. */
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

const subscribe = async (socket: Client, frame: Record<string, unknown>) => {
  const id = `${Math.random()}`;
  socket.send({ op: 'subscribe', id, ...frame });
  return socket.answer(id);
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
  await subscribe(early, { topics: ['a', 'b'] });
  publishSome(51, 80);
  // As after a restart: nothing is in memory.
  hub.begin(80);
  const live = await connect(t, port);
  const past = await connect(t, port);
  const filtered = await connect(t, port);
  t.match(await subscribe(live, { topics: ['a', 'b', 'never'] }), { result: 'live', replayed: 0 });
  t.match(await subscribe(past, { topics: ['a', 'b'], after: 33 }), { result: 'recovered' });
  t.match(await subscribe(filtered, { topics: ['a', 'b'], after: 21, filter: { odd: true } }), {
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

t.test('whatever is published meanwhile, and however slowly it is read', async (t) => {
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
    ...(n % 3 === 0 ? { after: 900 + n } : n % 3 === 1 ? { last: 20 } : {}),
    ...(n % 2 === 0 ? {} : { filter: { odd: n % 4 === 1 } }),
  }));
  await Promise.all(sockets.map((socket, n) => subscribe(socket, wishes[n] ?? {})));
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
      const due = isOn(server, topic, odd).filter((offset) => offset >= first);
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
  await Promise.all(sockets.map((socket, n) => subscribe(socket, { topics: [`x:${n}`, 'all'] })));
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
  t.match(await subscribe(socket, { topics: ['all'] }), { code: 'UNAVAILABLE', retryable: true });
  const listener = await connect(t, port, { path: '/ws?token=key-a' });
  t.equal(await listener.closed(), 4100);
  publish(1, ['all']);
  const after = await connect(t, port);
  t.match(await subscribe(after, { topics: ['all'] }), { result: 'live' }, 'it is in memory now');
  publish(1, ['all']);
  await until('the next', () => after.events().length === 1);
  t.equal(after.events()[0]?.prev, 10);
  t.equal(socket.events().length, 0, 'the failed one left nothing live');
});

t.test('equal filters share a channel, and different ones are bounded', async (t) => {
  const { port, hub, publish } = await startHub(t, { filters: 2 });
  const [one, two, three] = await Promise.all(range(1, 3).map(() => connect(t, port)));
  const ask = (socket: Client | undefined, filter: unknown) =>
    subscribe(socket as Client, { topics: ['all'], filter });
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
    const { result, replayed } = await subscribe(socket, frame);
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
  await subscribe(socket, { topics: ['a', 'b', 'me', 'none'] });
  await subscribe(socket, { topics: ['all'], filter: { odd: true } });
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
  t.match(await subscribe(socket, { topics: ['all'], after: 9_000 }), { result: 'gap', head: 5 });
  t.match(
    socket.frames.find(({ op }) => op === 'gap'),
    { topic: 'all', after: 9_000, until: 5, reason: 'epoch', backfill: /after=9000/ },
  );
  publish(1);
  await until('what is live', () => socket.events().length === 1);
  t.equal(socket.events()[0]?.prev, 5);
});
