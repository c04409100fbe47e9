import type { Test } from 'tap';
import { sendPing } from '../../src/features/webhooks/pinging.js';
import { findTarget } from '../../src/features/webhooks/store.js';
import {
  answer,
  begin,
  breakTlsAfter,
  cutAfter,
  drip,
  inSteps,
  type Misbehaviour,
  plain,
  pour,
  resetAfter,
  say,
  startHostile,
} from '../features/webhooks/raw-servers.js';
import { makeDeliverTo } from '../features/webhooks/treatment.js';
import { healthOf, makeWorld, many } from '../features/webhooks/world.js';
import { range } from '../help/hub.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * Receivers whose answer is valid only in its status line or only after it, and receivers that send
 * informational answers first. The status line alone decides whether the delivery succeeded.
 */

const world = await makeWorld(t);
t.beforeEach(world.reset);
const deliverTo = makeDeliverTo(world);
const pair = await world.receiver.issue({ names: ['127.0.0.1'] });

/** An answer, the status that counts, and the error, if any. A 2xx status means delivered. */
type Row = readonly [
  what: string,
  does: Misbehaviour,
  status: number | null,
  wanted?: {
    readonly error?: string | RegExp | null;
    readonly answer?: string | null;
    /** Minimum and maximum seconds until the next attempt. */
    readonly delay?: readonly [least: number, most: number];
  },
];

const line = 'HTTP/1.1 200 OK\r\n';
const chunked = answer('200 OK', 'Transfer-Encoding: chunked');
const empty = answer('200 OK', 'Content-Length: 0');
const ok = `${answer('200 OK', 'Content-Length: 2')}ok`;
const early = answer('103 Early Hints', 'Link: </a.css>; rel=preload; as=style', 'X-Note: hints');
const go_on = answer('100 Continue');
const lost = { error: 'connection_lost' } as const;
const invalid = { error: 'answer_invalid' } as const;
const noted = { error: /^(connection_lost|answer_invalid)$/ } as const;
const bytesOf = (text: string): readonly string[] => [...text];

const deliver = async (t: Test, rows: readonly Row[], wall_ms: number): Promise<void> => {
  const paths = rows.map((_, n) => `/${n}`);
  const behaviours = Object.fromEntries(rows.map(([, does], n) => [`/${n}`, does]));
  const hostile = await startHostile(t, pair, behaviours);
  const of = await deliverTo(paths.map(hostile.url), { wall_ms });
  for (const [n, [what, , status, wanted = {}]] of rows.entries()) {
    const is_success = status !== null && status >= 200 && status < 300;
    const { delay_s, ...got } = of(hostile.url(`/${n}`));
    const state = is_success ? 'delivered' : 'waiting';
    t.match(got, { state, status, ...('error' in wanted && { error: wanted.error }) }, what);
    if (wanted.answer !== undefined) t.equal(got.answer, wanted.answer, what);
    const [least, most] = wanted.delay ?? (is_success ? [-1, 1] : [4, 6]);
    t.ok(delay_s > least - 0.01 && delay_s < most + 0.01, `${what}: again after ${delay_s} s`);
    t.equal(hostile.count(`/${n}`), 1, `${what}: one request`);
  }
  await until('every connection is closed', () => hostile.open === 0);
};

/** The status line is complete, but the part after it is invalid. */
const broken_after_line: readonly Row[] = [
  [
    'a body that is cut',
    cutAfter(`${answer('200 OK', 'Content-Length: 100')}0123456789`),
    200,
    { ...lost, answer: '0123456789' },
  ],
  [
    'a body longer than its length',
    say(`${answer('200 OK', 'Content-Length: 2')}okokokok`),
    200,
    { error: null, answer: 'ok' },
  ],
  ['no chunk', say(`${chunked}ZZZ\r\nhello\r\n`), 200, invalid],
  ['a chunk that does not end', say(`${chunked}5\r\nhelloXX0\r\n\r\n`), 200, invalid],
  ['a chunk of more than any', say(`${chunked}FFFFFFFFFFFFFFFFFF\r\n`), 200, invalid],
  [
    'chunks without an end',
    resetAfter(`${chunked}5\r\nhello\r\n`),
    200,
    { ...lost, answer: 'hello' },
  ],
  [
    'an endless body',
    pour(chunked, Buffer.from(`4000\r\n${'y'.repeat(0x4000)}\r\n`)),
    200,
    { error: null, answer: 'y'.repeat(1_024) },
  ],
  ['a reset after the line', resetAfter(line), 200, lost],
  ['an end after the line', say('HTTP/1.1 204 No Content\r\n'), 204, lost],
  ['a header without a colon', say(`${line}no colon here\r\n\r\n`), 200, invalid],
  ['NUL in a header', say(`${line}X-A: a\0b\r\n\r\n`), 200, invalid],
  ['a folded header before any', say(`${line} folded\r\n\r\n`), 200],
  ['a length that is no number', say(`${line}Content-Length: abc\r\n\r\n`), 200, invalid],
  ['a negative length', say(`${line}Content-Length: -1\r\n\r\n`), 200, invalid],
  [
    'two lengths',
    say(`${answer('200 OK', 'Content-Length: 1', 'Content-Length: 2')}ab`),
    200,
    invalid,
  ],
  [
    'a length and chunks',
    say(`${answer('200 OK', 'Content-Length: 2', 'Transfer-Encoding: chunked')}ok`),
    200,
    invalid,
  ],
  [
    'a mebibyte of headers',
    pour(line, Buffer.from(`X-Pad: ${'a'.repeat(1_015)}\r\n`.repeat(16))),
    200,
    invalid,
  ],
  [
    'headers in Latin-1 and UTF-8',
    say(
      Buffer.concat([
        Buffer.from(`${line}Server: B\xfccher `, 'latin1'),
        Buffer.from('✓\r\nContent-Length: 0\r\n\r\n'),
      ]),
    ),
    200,
    { error: null },
  ],
  [
    'HTTP/1.0 without a length',
    say('HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6 Python/3.11\r\n\r\nok'),
    200,
    { error: null, answer: 'ok' },
  ],
  ['204 with a body', say(`${answer('204 No Content', 'Content-Length: 2')}ok`), 204],
  ...[201, 202, 203, 206, 226, 299].map(
    (status): Row => [`${status}`, plain(`${status} Fine`), status, { error: null }],
  ),
  ...['gzip', 'br'].map(
    (coding): Row => [
      `what is no ${coding}`,
      say(`${answer('200 OK', `Content-Encoding: ${coding}`, 'Content-Length: 4')}nope`),
      200,
      { error: null, answer: 'nope' },
    ],
  ),
  ['no end of TLS', cutAfter(`${answer('200 OK', 'Connection: close')}ok`), 200, { answer: 'ok' }],
  ['broken TLS', breakTlsAfter(`${answer('200 OK', 'Connection: close')}ok`), 200, lost],
  ['two answers', say(`${empty}${answer('500 No', 'Content-Length: 0')}`), 200],
  ['a line in single bytes', inSteps(bytesOf(empty), 5), 200, { error: null }],
  ['a line without a reason', say(`HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n`), 200],
  ['a line without the blank', say('HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n'), 200],
  [
    'a kilobyte and more, cut',
    resetAfter(`${answer('200 OK', 'Content-Length: 2000')}${'a'.repeat(1_500)}`),
    200,
    { ...lost, answer: 'a'.repeat(1_024) },
  ],
];

t.test('whatever follows a status line of 2xx: delivered, and noted', (t) =>
  deliver(t, broken_after_line, 60_000),
);

const asking = answer('429 Slow', 'Retry-After: 9', 'Content-Length: 9');

/** The status line is incomplete, or its status is not 2xx. */
const failures: readonly Row[] = [
  ['a line that ends in a status', say('HTTP/1.1 20'), null, lost],
  ['a line that is reset', resetAfter('HTTP/1.1 '), null, lost],
  ['the beginning of a line', say('HT'), null, lost],
  ['nothing', say(''), null, lost],
  ['nothing, reset', resetAfter(''), null, lost],
  ...[
    'SSH-2.0-OpenSSH_9.2\r\n',
    'ICY 200 OK\r\n\r\n',
    'HTTP/1.1 abc OK\r\n\r\n',
    'HTTP/1.1 2000 OK\r\n\r\n',
    'HTTP/1.1 20 OK\r\n\r\n',
    '{"ok":true}\r\n',
    '200 OK\r\n\r\n',
    'HTTP/1.1  200 OK\r\n\r\n',
    'HTTP/2 200 \r\n\r\n',
  ].map((text): Row => [JSON.stringify(text), say(text), null, { ...invalid, answer: null }]),
  ['SETTINGS of HTTP/2', say(Buffer.from('000000040000000000', 'hex')), null, noted],
  ...['099', '600', '999', '301', '302', '304', '307', '308', '400', '401', '404', '503'].map(
    (status): Row => [
      status,
      plain(`${status} X`, 'Location: https://127.0.0.1:1/x'),
      Number(status),
    ],
  ),
  ['000', plain('000 X'), 0],
  [
    'a body that says 200',
    say(`${answer('500 X', 'Content-Length: 16')}{"status":"200"}`),
    500,
    { error: null, answer: '{"status":"200"}' },
  ],
  [
    'Retry-After and a body that is cut',
    resetAfter(`${asking}x`),
    429,
    { ...lost, delay: [9, 10] },
  ],
  [
    'Retry-After and no end of the headers',
    resetAfter('HTTP/1.1 429 Slow\r\nRetry-After: 9\r\n'),
    429,
    { ...lost, delay: [4, 10] },
  ],
];

t.test('without a whole status line of 2xx: tried again', (t) => deliver(t, failures, 60_000));

/** Final answers after informational ones. */
const informational: readonly Row[] = [
  ['100, and 200 later', inSteps([go_on, ok], 200), 200, { answer: 'ok' }],
  ['100 and 200 at once', say(go_on + ok), 200, { answer: 'ok' }],
  [
    'several kinds',
    say(`${go_on}${answer('102 Processing')}${early}${go_on}${early}${ok}`),
    200,
    { error: null },
  ],
  ['103 before 204', say(early + answer('204 No Content')), 204, { error: null }],
  ['103 before 500', say(early + answer('500 X', 'Content-Length: 0')), 500],
  ['100 before a redirect', say(go_on + answer('302 X', 'Location: https://127.0.0.1:1/')), 302],
  ['100 before 429', say(`${go_on}${asking}123456789`), 429, { delay: [9, 10] }],
  ['100, then an end', say(go_on), null, lost],
  ['100, then a reset', resetAfter(go_on), null, lost],
  ['100, then a line that is cut', say(`${go_on}HTTP/1.1 20`), null, lost],
  ['100 without its end', say('HTTP/1.1 100 Continue\r\n'), null, lost],
  ...['104 Upload Resumption Supported', '199 Misc', '110 X'].map(
    (status): Row => [status, say(`${answer(status, 'Location: /u/1')}${ok}`), 200],
  ),
  [
    '101 and frames',
    say(`${answer('101 X', 'Upgrade: websocket', 'Connection: Upgrade')}\x81\x02hi`),
    101,
    invalid,
  ],
  ['101 and 200', say(answer('101 X', 'Upgrade: h2c', 'Connection: Upgrade') + ok), 101, invalid],
  ['101 without an upgrade', say(answer('101 Switching Protocols')), 101],
  ['byte by byte', inSteps(bytesOf(early + empty), 2), 200, { error: null }],
  ['twenty', say(answer('102 Processing').repeat(20) + ok), 200],
  ['fifty thousand', say(answer('102 Processing').repeat(50_000) + ok), null, invalid],
  ['six kilobytes', say(answer('103 Early Hints', `Link: ${'l'.repeat(6_000)}`) + ok), 200],
  [
    '64 kilobytes',
    say(answer('103 Early Hints', `Link: ${'l'.repeat(64_000)}`) + ok),
    null,
    invalid,
  ],
  ['100 with a length', say(answer('100 Continue', 'Content-Length: 0') + ok), 200],
  ['only the last is kept', say(`${early}${ok}`), 200, { answer: 'ok' }],
  ['HTTP/1.0', say('HTTP/1.0 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\n'), 200],
];

t.test('informational answers before the final one are skipped', (t) =>
  deliver(t, informational, 60_000),
);

const wall_ms = 1_000;
const late = { error: 'timeout' } as const;

/** The time limit of the call ends each of these. */
const slow: readonly Row[] = [
  ['a body that never comes', begin(answer('200 OK', 'Content-Length: 5')), 200, late],
  ['a drip of body', drip(answer('200 OK', 'Content-Length: 1000'), 100), 200, late],
  ['a drip of headers', drip(`${line}X-Slow: `, 100), 200, late],
  ['503 with a body that hangs', begin(answer('503 Busy', 'Content-Length: 5')), 503, late],
  ['nothing at all', begin(''), null, late],
  ['a line that drips', inSteps(bytesOf(line), 200), null, late],
  ['102 for ever', inSteps(Array(1_000).fill(answer('102 Processing')), 200), null, late],
  ['100 and nothing', begin(go_on), null, late],
  ['103 before a body that hangs', begin(early + answer('200 OK', 'Content-Length: 9')), 200, late],
];

t.test('what hangs or drips ends with the wall clock; the status counts if it came', (t) =>
  deliver(t, slow, wall_ms),
);

t.test('a final answer shortly before the end of its time counts', async (t) => {
  const timely: readonly Row[] = [
    ['a late line', inSteps(['', empty], 800), 200, { error: null }],
    [
      '102 and a late line',
      inSteps([...range(1, 5).map(() => answer('102 Processing')), empty], 200),
      200,
    ],
  ];
  await deliver(t, timely, 20_000);
});

t.test('100 before the request was read: the whole request arrives', async (t) => {
  const hostile = await startHostile(t, pair, { '/': say(ok) }, begin(go_on));
  const of = await deliverTo([hostile.url('/')]);
  t.match(of(hostile.url('/')), { state: 'delivered', status: 200, error: null, answer: 'ok' });
});

t.test('410 to two events switches off, although its body breaks or 100 comes first', async (t) => {
  const hostile = await startHostile(t, pair, {
    '/cut': resetAfter(`${answer('410 Gone', 'Content-Length: 9')}x`),
    '/late': say(go_on + answer('410 Gone', 'Content-Length: 0')),
  });
  const cut = await world.addHook({ url: hostile.url('/cut') });
  const informed = await world.addHook({ url: hostile.url('/late') });
  await world.record(...many(2));
  await world.startSigner({ maintenance: { every_ms: 20 } });
  for (const hook of [cut, informed]) {
    await until('it is off', async () => !(await healthOf(world, hook)).active);
    t.match((await healthOf(world, hook)).disabled_reason, /410 Gone to two events/);
  }
});

t.test('a ping follows the same rules', async (t) => {
  const rows = {
    '/hangs': [begin(answer('200 OK', 'Content-Length: 5')), { delivered: true, status: 200 }],
    '/cut': [say('HTTP/1.1 20'), { delivered: false, status: null, error: 'connection_lost' }],
    '/early': [say(go_on + early + answer('204 X')), { delivered: true, status: 204 }],
  } as const;
  const behaviours = Object.entries(rows).map(([path, [does]]) => [path, does] as const);
  const hostile = await startHostile(t, pair, Object.fromEntries(behaviours));
  for (const [path, [, wanted]] of Object.entries(rows)) {
    const { id, owner } = await world.addHook({ url: hostile.url(path) });
    const target = await findTarget(world.deps.sql, owner, id);
    if (target === undefined) throw new Error('there is no such webhook');
    const shortly: typeof world.webhooks = {
      ...world.webhooks,
      send: (attempt, now_ms) => world.webhooks.send(attempt, now_ms, wall_ms / 2),
    };
    const outcome = await sendPing(shortly, target, new Date());
    t.match(outcome, wanted, path);
    t.match(outcome.message, /^The (receiver answered|connection was lost)/);
  }
});

t.test('a receiver that hangs after 200 does not slow another one', async (t) => {
  const hostile = await startHostile(t, pair, {
    '/hangs': begin(answer('200 OK', 'Content-Length: 5')),
  });
  await world.addHook({ url: hostile.url('/hangs') });
  await world.addHook({ path: '/quick' });
  await world.record(...many(20));
  await world.startSigner({ webhooks: world.openWebhooks({ limits: { wall_ms: 1_000 } }) });
  await world.receiver.waitFor('/quick', 20);
  t.ok(hostile.count('/hangs') < 20, 'the other one was not waited for');
  await world.settled(40, 'delivered');
  t.equal(hostile.count('/hangs'), 20, 'each is posted once');
});

t.test('a failed attempt is made again with the same id and body', async (t) => {
  world.receiver.script('/', { status: 500 });
  await world.addHook();
  const [event_id] = await world.record({});
  await world.startSigner();
  await world.settled(1, 'waiting');
  await world.makeDue();
  await world.settled(1, 'delivered');
  const [first, second] = world.receiver.received;
  t.same(second?.body, first?.body);
  t.match(first?.headers, { 'webhook-id': event_id, 'x-svc-attempt': '1' });
  t.match(second?.headers, { 'webhook-id': event_id, 'x-svc-attempt': '2' });
});
