import fc from 'fast-check';
import { t } from 'tap';
import { makeFrameReader } from '../../src/socket/frames.js';
import { socket_ops } from '../../src/socket/hub.js';
import { range, startHub } from '../help/hub.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

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
  socket.send({ op: 'ping', id: 'x'.repeat(64) });
  await socket.answer('x'.repeat(64));
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

t.test('no frames end the process, and other sockets do not notice', async (t) => {
  const { port, publish, logged, hub } = await startHub(t, { connections_ip: 10_000 }, 5);
  const witness = await connect(t, port);
  witness.send({ op: 'subscribe', id: 1, topics: ['witness'] });
  await witness.answer(1);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(anyFrame, fc.boolean()), { minLength: 1, maxLength: 12 }),
      async (sent) => {
        const socket = await connect(t, port);
        for (const [raw, binary] of sent) socket.ws.send(raw, { binary: binary && raw.length > 9 });
        socket.ws.close();
        await socket.closed();
        publish(1, ['witness']);
      },
    ),
    { numRuns: 150 },
  );
  const published = hub.head();
  await until('the witness has all', () => witness.events().length === published - 5);
  t.strictSame(witness.offsets(), range(6, published));
  t.strictSame(logged, [], 'nothing threw inside either');
  await until('all are gone', () => hub.stats().sockets === 1);
});
