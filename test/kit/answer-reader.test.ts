import fc from 'fast-check';
import { test } from 'tap';
import { AnswerReader, type Fed } from '../../src/kit/guarded-client/answer-reader.js';

const limits = { answer_bytes: 64, kept_bytes: 16 };

interface Read {
  /** What the last piece gave. */
  readonly fed: Fed;
  readonly status: number | null;
  readonly kept: string;
  readonly may_reuse: boolean;
  /** Whether a connection that closes now closes in order. */
  readonly end: boolean;
}

const readPieces = (pieces: readonly Buffer[], has_body = true): Read => {
  const reader = new AnswerReader(limits, has_body);
  let fed: Fed = 'more';
  for (const piece of pieces) {
    fed = reader.feed(piece);
    if (fed !== 'more') break;
  }
  const { status, may_reuse } = reader;
  const kept = Buffer.from(reader.kept()).toString('latin1');
  return { fed, status, kept, may_reuse: fed === 'done' && may_reuse, end: reader.end() };
};

const read = (text: string, has_body = true): Read =>
  readPieces([Buffer.from(text, 'latin1')], has_body);

const ok = 'HTTP/1.1 200 OK\r\n';
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`;

const valid: readonly (readonly [text: string, wanted: Partial<Read>])[] = [
  [`${ok}Content-Length: 2\r\n\r\nok`, { fed: 'done', status: 200, kept: 'ok', may_reuse: true }],
  [`${ok}content-length:0\r\n\r\n`, { fed: 'done', kept: '', may_reuse: true }],
  ['HTTP/1.1 204 No Content\r\n\r\n', { fed: 'done', status: 204, may_reuse: true }],
  ['HTTP/1.1 304\r\nContent-Length: 9\r\n\r\n', { fed: 'done', status: 304, may_reuse: true }],
  [`${ok}Connection: Close\r\nContent-Length: 0\r\n\r\n`, { fed: 'done', may_reuse: false }],
  ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', { fed: 'done', may_reuse: false }],
  [`${ok}\r\nto the end`, { fed: 'more', kept: 'to the end', end: true }],
  [`${ok}Content-Length: 9\r\n\r\npart`, { fed: 'more', kept: 'part', end: false }],
  [`${chunked}2\r\nok\r\n3;x=y\r\nay!\r\n0\r\nX: y\r\n\r\n`, { fed: 'done', kept: 'okay!' }],
  [`${chunked}0\r\n\r\n`, { fed: 'done', may_reuse: true }],
  [`${chunked}5\r\nhel`, { fed: 'more', kept: 'hel', end: false }],
  [`HTTP/1.1 100 Continue\r\n\r\n${ok}Content-Length: 0\r\n\r\n`, { fed: 'done', status: 200 }],
  [`${ok}Content-Length: 64\r\n\r\n${'x'.repeat(64)}`, { fed: 'done', kept: 'x'.repeat(16) }],
  [`${ok}Content-Length: 65\r\n\r\n${'x'.repeat(65)}`, { fed: 'enough', kept: 'x'.repeat(16) }],
  [`${ok}\r\n${'x'.repeat(65)}`, { fed: 'enough' }],
  [`${chunked}41\r\n${'x'.repeat(65)}`, { fed: 'enough' }],
  [`${ok}X: ${'x'.repeat(8_000)}\r\nContent-Length: 0\r\n\r\n`, { fed: 'done' }],
];

const invalid: readonly string[] = [
  'SSH-2.0-OpenSSH',
  'HTTP/2 200 OK\r\n\r\n',
  'HTTP/1.1 20 OK\r\n\r\n',
  'HTTP/1.1 0200 OK\r\n\r\n',
  'HTTP/1.1  200 OK\r\n\r\n',
  'HTTP/1.1 200OK\r\n\r\n',
  'HTTP/1.1 200 O\0K\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n'.repeat(9),
  `${ok}No colon\r\n\r\n`,
  `${ok}: no name\r\n\r\n`,
  `${ok}Bad name: x\r\n\r\n`,
  `${ok}X: a\r\n folded\r\n\r\n`,
  `${ok}X: a\nY: b\r\n\r\n`,
  `${ok}X: a\rb\r\n\r\n`,
  `${ok}X: ${'x'.repeat(8_192)}\r\n\r\n`,
  `${ok}Content-Length: -1\r\n\r\n`,
  `${ok}Content-Length: 0x2\r\n\r\n`,
  `${ok}Content-Length: 1, 1\r\n\r\n`,
  `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
  `${ok}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`,
  `${ok}Transfer-Encoding: gzip\r\n\r\n`,
  `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n`,
  'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
  `${chunked}x\r\n`,
  `${chunked}-1\r\n`,
  `${chunked}123456789\r\n`,
  `${chunked}2\nok\r\n`,
  `${chunked}2\r\nokay\r\n`,
  `${chunked}2;${'x'.repeat(1_100)}\r\nok\r\n`,
];

test('good answers are read as they say', (t) => {
  for (const [text, wanted] of valid)
    t.match(read(text), wanted, JSON.stringify(text.slice(0, 70)));
  t.end();
});

test('what could be read in two ways, or in none, is invalid', (t) => {
  for (const text of invalid) t.equal(read(text).fed, 'invalid', JSON.stringify(text.slice(0, 70)));
  t.end();
});

test('an answer to HEAD ends with its head', (t) => {
  const text = `${ok}Content-Length: 100\r\n\r\n`;
  t.match(read(text, false), { fed: 'done', status: 200, may_reuse: true });
  t.end();
});

test('bytes after the end of an answer cost the connection', (t) => {
  t.match(read(`${ok}Content-Length: 2\r\n\r\nok!`), { fed: 'done', kept: 'ok', may_reuse: false });
  t.match(read(`${chunked}0\r\n\r\nHTTP/1.1 200 OK`), { fed: 'done', may_reuse: false });
  t.match(read('HTTP/1.1 204 No\r\n\r\n!'), { fed: 'done', may_reuse: false });
  t.end();
});

test('a body of nothing but frames ends', (t) => {
  const reader = new AnswerReader({ answer_bytes: 1_000_000, kept_bytes: 10 }, true);
  t.equal(reader.feed(Buffer.from(chunked)), 'more');
  const frames = Buffer.from('1;x=yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\nz\r\n'.repeat(1_000));
  t.equal(reader.feed(frames), 'more');
  t.equal(reader.feed(frames), 'enough');
  t.end();
});

test('it makes no difference where an answer is cut into pieces', (t) => {
  const texts = [...valid.map(([text]) => text), ...invalid.filter((text) => text.length < 500)];
  const cases = fc.tuple(fc.constantFrom(...texts), fc.array(fc.nat(), { maxLength: 12 }));
  fc.assert(
    fc.property(cases, ([text, cuts]) => {
      const whole = Buffer.from(text, 'latin1');
      const at = [...new Set(cuts.map((cut) => cut % (whole.length + 1)))].sort((a, b) => a - b);
      const ends = [...at, whole.length];
      const pieces = ends.map((end, n) => whole.subarray(ends[n - 1] ?? 0, end));
      const { may_reuse: _, ...one } = readPieces([whole]);
      const { may_reuse: __, ...many } = readPieces(pieces);
      t.same(many, one, JSON.stringify(pieces.map(String)));
    }),
  );
  t.end();
});

test('nothing that a peer sends is thrown back', (t) => {
  const noise = fc.oneof(
    fc.string(),
    fc.string().map((text) => ok + text),
    fc.string().map((text) => chunked + text),
  );
  fc.assert(
    fc.property(fc.array(noise, { maxLength: 4 }), (texts) => {
      const { fed } = readPieces(texts.map((text) => Buffer.from(text)));
      return ['more', 'done', 'enough', 'invalid'].includes(fed);
    }),
  );
  t.end();
});
