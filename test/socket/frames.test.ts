import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { makeFrameReader } from '../../src/socket/frames.js';
import { socket_ops } from '../../src/socket/hub.js';
import { range, startHub } from '../help/hub.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';
import { type FrameParts, makeRawFrame, openRaw } from './raw-ws.js';

t.test('what is no frame closes the socket with 4000 and says why', async (t) => {
  const { port } = await startHub(t);
  const broken: [string | Buffer, RegExp][] = [
    ['', /empty/],
    ['{', /not valid JSON/],
    ['[]', /JSON object/],
    ['null', /JSON object/],
    ['"ping"', /JSON object/],
    ['{}', /"op"/],
    ['{"op":1}', /"op"/],
    ['{"op":"ping","x":"\\u0000"}', /NUL/],
    [`{"op":"ping","x":${'['.repeat(17)}${']'.repeat(17)}}`, /deeper/],
    ['{"op":"ping","__proto__":1}', /__proto__/],
    [Buffer.from('{"op":"ping"}'), /text frames/],
  ];
  for (const [sent, why] of broken) {
    const socket = await connect(t, port);
    socket.ws.send(sent);
    t.equal(await socket.closed(), 4000, String(sent).slice(0, 40));
    t.match(socket.frames.at(-1), { op: 'error', code: 'INVALID_FRAME', error: why });
  }
});

t.test('a frame that asks amiss is answered, and the socket stays', async (t) => {
  const { port, hub } = await startHub(t);
  const socket = await connect(t, port);
  const cases: [Record<string, unknown>, string][] = [
    [{ op: 'nothing' }, 'UNKNOWN_OP'],
    [{ op: 'toString' }, 'UNKNOWN_OP'],
    [{ op: 'subscribe' }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: [] }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: 'all' }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: [1] }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['x'.repeat(201)] }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['all'], after: -1 }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['all'], after: 0.5 }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['all'], after: 2 ** 53 }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['all'], last: 0 }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['all'], last: 1_001 }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['all'], last: 1, after: 0 }, 'INVALID_FRAME'],
    [{ op: 'subscribe', topics: ['all'], filter: { odd: 1 } }, 'INVALID_FILTER'],
    [{ op: 'subscribe', topics: ['all', 'no:such'] }, 'INVALID_TOPIC'],
    [{ op: 'unsubscribe', topics: ['no:such'] }, 'INVALID_TOPIC'],
  ];
  for (const [index, [frame, code]] of cases.entries()) {
    socket.send({ ...frame, id: index });
    const answer = await socket.answer(index);
    t.match(answer, { op: 'error', code, retryable: false }, JSON.stringify(frame).slice(0, 60));
  }
  socket.send({ op: 'ping', id: { not: 'an id' } });
  t.match(await socket.get('the refusal', ({ op, id }) => op === 'error' && id === undefined), {
    code: 'INVALID_FRAME',
  });
  t.equal(hub.stats().topics, 0);
  await socket.ask({ op: 'ping' });
});

const anyFrame = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.json({ maxDepth: 4 }).map((text) => Buffer.from(text)),
  fc
    .record(
      {
        op: fc.constantFrom('auth', 'subscribe', 'unsubscribe', 'ping', 'call', '__proto__'),
        id: fc.oneof(fc.integer(), fc.string(), fc.anything()),
        topics: fc.oneof(fc.array(fc.oneof(fc.string(), fc.constant('all'))), fc.anything()),
        after: fc.oneof(fc.integer(), fc.double(), fc.anything()),
        api_key: fc.oneof(fc.string(), fc.constant('key-a'), fc.anything()),
        token: fc.string(),
      },
      { requiredKeys: ['op'] },
    )
    .map((value) => Buffer.from(JSON.stringify(value) ?? 'undefined')),
);

t.test('no bytes make the reader of frames throw', async (t) => {
  const readFrame = makeFrameReader(socket_ops, 16_384);
  fc.assert(
    fc.property(anyFrame, (raw) => typeof readFrame(raw) === 'object'),
    { numRuns: 2_000 },
  );
  t.pass();
});

const [text, continuation, ping] = [1, 0, 9] as const;
const frame = (payload: string | Buffer, parts: FrameParts = { opcode: text }): Buffer =>
  makeRawFrame(payload, parts);
const asked = (id: number): string => JSON.stringify({ op: 'ping', id });

t.test('a frame in pieces is one frame, with a ping between them', async (t) => {
  const { port } = await startHub(t);
  const socket = await openRaw(port);
  const [a, b, c] = ['{"op":"pi', 'ng","i', 'd":7}'];
  socket.write(frame(a, { opcode: text, fin: false }));
  socket.write(frame(b, { opcode: continuation, fin: false }));
  socket.write(frame('x', { opcode: ping }));
  socket.write(frame(c, { opcode: continuation }));
  await until('the answer', () => socket.texts.some((one) => one.includes('"pong","id":7')));
  for (const byte of frame(asked(8))) socket.write(Buffer.from([byte]));
  await until('the answer', () => socket.texts.some((one) => one.includes('"pong","id":8')));
  socket.destroy();
});

t.test('what is against the protocol ends the connection, each in its way', async (t) => {
  const { port, hub, logged } = await startHub(t);
  const cases: [string, Buffer, readonly number[]][] = [
    ['a frame over 64 KiB', frame(`{"op":"ping","x":"${'x'.repeat(65_537)}"}`), [4000]],
    ['a frame over the most', frame('x'.repeat(98_305)), [1006]],
    ['a length nobody has', frame('x', { opcode: text, said_length: 2n ** 62n }), [1006]],
    ['no UTF-8', frame(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])), [1006, 1007, 4000]],
    ['a piece of nothing', frame(asked(1), { opcode: continuation }), [1002, 1006]],
    [
      'two beginnings',
      Buffer.concat([1, 2].map(() => frame('{', { opcode: text, fin: false }))),
      [1002, 1006],
    ],
    ['an unknown opcode', frame('{}', { opcode: 5 }), [1002, 1006]],
    ['reserved bits', frame('{}', { opcode: text, reserved: 3 }), [1002, 1006]],
    ['a long ping', frame('x'.repeat(126), { opcode: ping }), [1002, 1006]],
    ['a ping in pieces', frame('x', { opcode: ping, fin: false }), [1002, 1006]],
  ];
  for (const [name, bytes, codes] of cases) {
    const socket = await openRaw(port);
    socket.write(bytes);
    const code = await socket.closed;
    t.ok(codes.includes(code), `${name}: ${code}`);
  }
  const pieces = await openRaw(port);
  pieces.write(frame('{', { opcode: text, fin: false }));
  for (let i = 0; i < 100; i += 1) {
    pieces.write(frame(' '.repeat(1_000), { opcode: continuation, fin: false }));
  }
  t.equal(await pieces.closed, 1006, 'pieces that add up to more than the most');
  await until('all are gone', () => hub.stats().sockets === 0);
  t.strictSame(logged, []);
});

t.test('floods end with 4102, and those who do not read their answers with 4101', async (t) => {
  const limits = { unread_ms: 300, backpressure_bytes: 16_384 };
  const { port, hub, publish } = await startHub(t, limits);
  const witness = await connect(t, port);
  await witness.subscribe(['all']);
  for (const payload of [asked(1), '{"op":"nothing"}', '{"op":"subscribe","topics":["all"]}']) {
    const flood = await openRaw(port);
    flood.write(Buffer.concat(range(1, 2_000).map(() => frame(payload))));
    t.equal(await flood.closed, 4102, payload);
  }
  const deaf = await openRaw(port);
  deaf.pause();
  const pings = Buffer.concat(range(1, 2_000).map(() => frame('x'.repeat(120), { opcode: ping })));
  await until('it is let go of', () => {
    deaf.write(pings);
    return hub.stats().sockets === 1;
  });
  deaf.destroy();
  publish(3);
  await until('the witness has all', () => witness.events().length === 3);
});

const anyParts: fc.Arbitrary<FrameParts> = fc.record({
  opcode: fc.integer({ min: 0, max: 15 }),
  fin: fc.boolean(),
  is_masked: fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, fc.boolean()),
  reserved: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 7 })),
});
const anyPayload = fc.oneof(fc.constant(asked(1)), anyFrame, fc.json({ maxDepth: 20 }));
const anyBytes = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(anyPayload, anyParts).map(([p, parts]) => frame(p, parts)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
);

t.test('whatever bytes come, nothing throws, nothing is left and memory is flat', async (t) => {
  const { port, hub, logged, publish } = await startHub(t, { connections_ip: 10_000 });
  const witness = await connect(t, port);
  await witness.subscribe(['all']);
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  let published = 0;
  const attack = async (rounds: number): Promise<void> => {
    for (const bytes of fc.sample(fc.array(anyBytes, { minLength: 1, maxLength: 8 }), rounds)) {
      const socket = await openRaw(port);
      for (const some of bytes) socket.write(some);
      socket.destroy();
      await socket.closed;
    }
    publish(1);
    published += 1;
    await until('all are gone', () => hub.stats().sockets === 1);
    await until('the witness has all', () => witness.events().length === published);
    (witness.frames as unknown[]).length = 0;
    published = 0;
  };
  const measure = (): number => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  await attack(500);
  const before = measure();
  await attack(1_000);
  const grown = Math.round((measure() - before) / 1_024);
  // If sockets were never freed, each one would take more than 2 KiB.
  t.ok(grown < 2_000, `memory grew by ${grown} KiB over 1,000 sockets`);
  t.strictSame(logged, []);
  t.equal(hub.stats().topics, 1);
});

const pad = (bytes: number): string => {
  const frame = JSON.stringify({ op: 'ping', id: 1, pad: '' });
  return JSON.stringify({ op: 'ping', id: 1, pad: 'x'.repeat(bytes - frame.length) });
};

t.test('a frame may have 16 KiB', async (t) => {
  const { port } = await startHub(t);
  const socket = await connect(t, port);
  socket.send(pad(16_384));
  t.match(await socket.answer(1), { op: 'pong' });
  const over = await connect(t, port);
  over.send(pad(16_385));
  t.equal(await over.closed(), 4000);
  t.match(over.frames.at(-1), { op: 'error', code: 'INVALID_FRAME', error: /16384 bytes/ });
});
