import fc from 'fast-check';
import { withDeadline } from '../../src/kit/service.js';
import { startApp } from '../help/app.js';
import { holds } from '../help/property.js';
import { openRaw, type RawAnswer, writeRequest } from '../help/raw-http.js';
import { t } from '../help/tap.js';

/**
 * Bytes that no HTTP client would send. If a request is unreadable, the native parser answers
 * without a body or a request id, or the connection is closed. All other requests get the errors of
 * the contract.
 */
const runs = Number(process.env['FUZZ_RUNS'] ?? 0);
if (runs > 0) t.setTimeout(0);
const app = await startApp(t, { roles: ['api'] });
const bound_ms = 10_000;

const isAlive = async (): Promise<boolean> => {
  const { status } = await withDeadline(app.call('GET', '/livez'), bound_ms, 'An ordinary call');
  return status === 200;
};

/** The parser's answer to a first line that is unreadable or incomplete. */
const not_http = 505;

const findProblem = ({ status, headers, text }: RawAnswer): string | null => {
  const by_parser = headers['x-request-id'] === undefined;
  if (status >= 500 && !(by_parser && status === not_http)) return `${status}: ${text}`;
  if (status < 400) return null;
  if (by_parser) return text === '' || text.startsWith('<') ? null : `odd: ${text}`;
  const body = JSON.parse(text) as Record<string, unknown>;
  return body['status'] === status && typeof body['code'] === 'string' ? null : `odd: ${text}`;
};

interface Heard {
  readonly statuses: readonly number[];
  readonly problem: string | null;
}

/** Sends the parts in turn. Checks the answers, and that other clients are still served. */
const sendRaw = async (...parts: readonly (string | Uint8Array)[]): Promise<Heard> => {
  const connection = openRaw(app.port);
  for (const part of parts) {
    connection.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  // Two round trips of another client. By then the server has read everything above.
  const is_alive = (await isAlive()) && (await isAlive());
  const answers = connection.take();
  connection.reset();
  await withDeadline(connection.closed, bound_ms, 'Letting go of a connection');
  const problem = answers.map(findProblem).find((one) => one !== null) ?? null;
  return { statuses: answers.map(({ status }) => status), problem: is_alive ? problem : 'dead' };
};

const json = 'Content-Type: application/json';
const register = 'POST /api/register HTTP/1.1';
const chunked = [json, 'Transfer-Encoding: chunked'];

const oddities: Readonly<Record<string, readonly (string | Uint8Array)[]>> = {
  'nothing at all': [''],
  'only line ends': ['\r\n\r\n\r\n', '\n\n'],
  binary: [Uint8Array.from({ length: 2_000 }, (_, n) => (n * 37) % 256)],
  'a TLS greeting': [Uint8Array.of(0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3)],
  'HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  'HTTP/1.0': ['GET /livez HTTP/1.0\r\n\r\n'],
  'HTTP/0.9': ['GET /livez\r\n'],
  'no host': ['GET /livez HTTP/1.1\r\n\r\n'],
  'two hosts': [writeRequest('GET /livez HTTP/1.1', ['Host: other'])],
  'a whole address': [writeRequest('GET http://elsewhere/livez HTTP/1.1')],
  'a path without a slash': [writeRequest('GET livez HTTP/1.1')],
  'an asterisk': [writeRequest('OPTIONS * HTTP/1.1')],
  CONNECT: [writeRequest('CONNECT elsewhere:443 HTTP/1.1')],
  'a NUL in the path': [writeRequest('GET /li\0vez HTTP/1.1')],
  'a path of 60,000 bytes': [writeRequest(`GET /${'a'.repeat(60_000)} HTTP/1.1`)],
  'a query of 60,000 bytes': [writeRequest(`GET /api/questions?q=${'a'.repeat(60_000)} HTTP/1.1`)],
  'a header without a name': [writeRequest('GET /livez HTTP/1.1', [': x'])],
  'a header without a colon': [writeRequest('GET /livez HTTP/1.1', ['nothing'])],
  'a header on two lines': [writeRequest('GET /livez HTTP/1.1', ['X-A: 1\r\n  2'])],
  'a NUL in a header': [writeRequest('GET /livez HTTP/1.1', ['X-A: a\0b'])],
  '200 headers': [
    writeRequest(
      'GET /livez HTTP/1.1',
      Array.from({ length: 200 }, (_, n) => `X-${n}: ${n}`),
    ),
  ],
  'a header of 60,000 bytes': [writeRequest('GET /livez HTTP/1.1', [`X-A: ${'a'.repeat(60_000)}`])],
  'headers that never end': ['GET /livez HTTP/1.1\r\nHost: x\r\n', 'X-A: 1\r\n'.repeat(2_000)],
  'a prototype for a header': [
    writeRequest('GET /livez HTTP/1.1', ['__proto__: x', 'constructor: y']),
  ],
  'a negative length': [writeRequest(register, [json, 'Content-Length: -1'])],
  'a length that is no number': [writeRequest(register, [json, 'Content-Length: ten'], 'x')],
  'a length of many digits': [writeRequest(register, [json, `Content-Length: ${'9'.repeat(40)}`])],
  'a length with a sign': [writeRequest(register, [json, 'Content-Length: +5'], 'hello')],
  'two lengths': [
    writeRequest(register, [json, 'Content-Length: 5', 'Content-Length: 7'], 'hello'),
  ],
  'a length and chunks': [writeRequest(register, [...chunked, 'Content-Length: 5'], '0\r\n\r\n')],
  'a length longer than the body': [writeRequest(register, [json, 'Content-Length: 500'], '{}')],
  'a length shorter than the body': [writeRequest(register, [json, 'Content-Length: 2'], '{}{}{}')],
  'an unknown coding': [writeRequest(register, [json, 'Transfer-Encoding: gzip'], 'x')],
  'chunks of no number': [writeRequest(register, chunked, 'zz\r\nhello\r\n0\r\n\r\n')],
  'a chunk of 2^64': [writeRequest(register, chunked, `${'f'.repeat(16)}\r\nhello`)],
  'a chunk longer than told': [writeRequest(register, chunked, '2\r\nhello\r\n0\r\n\r\n')],
  'chunks without an end': [writeRequest(register, chunked, '5\r\nhello\r\n')],
  'a chunk with an extension': [
    writeRequest(register, chunked, '2;a="b\r\n{}\r\n0\r\nX: y\r\n\r\n'),
  ],
  'thousands of tiny chunks': [
    writeRequest(register, chunked, `${'1\r\n{\r\n'.repeat(9_000)}0\r\n\r\n`),
  ],
  'a half request': ['POST /api/register HTTP/1.1\r\nHost: x\r\nContent-Le'],
  'a websocket that is none': [
    writeRequest('GET /ws HTTP/1.1', ['Upgrade: websocket', 'Connection: Upgrade']),
  ],
  'a websocket with a bad key': [
    writeRequest('GET /ws HTTP/1.1', [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Key: x',
      'Sec-WebSocket-Version: 99',
    ]),
    Uint8Array.of(0xff, 0xff, 0x00, 0x01),
  ],
  'an upgrade elsewhere': [
    writeRequest('GET /livez HTTP/1.1', ['Upgrade: h2c', 'Connection: Upgrade']),
  ],
  'an expectation': [
    writeRequest(register, [json, 'Expect: 200-maybe', 'Content-Length: 2'], '{}'),
  ],
  'ten requests at once': [
    Buffer.concat(Array.from({ length: 10 }, () => writeRequest('GET /health HTTP/1.1'))),
  ],
};

for (const [name, parts] of Object.entries(oddities)) {
  t.test(`${name}: no harm done`, async (t) => {
    const { problem, statuses } = await sendRaw(...parts);
    t.equal(problem, null, `answered ${statuses.join(', ') || 'nothing'}`);
  });
}

const request_parts = fc.constantFrom(
  ...[' ', '\r\n', '\n', '\0', '\u00ff', ' HTTP/1.1', 'Content-Length: ', 'X-API-Key: '],
  ...['Host: x', 'Transfer-Encoding: chunked'],
  ...'GET POST /api/register /livez ? % : 5 0 {}'.split(' '),
);

t.test('any mixture of the parts of requests, in any pieces', async (t) => {
  const piece = fc.array(request_parts, { maxLength: 12 }).map((some) => some.join(''));
  const pieces = fc.array(piece, { maxLength: 5 });
  const property = fc.asyncProperty(pieces, async (parts) => {
    const { problem } = await sendRaw(...parts.map((part) => Buffer.from(part, 'latin1')));
    if (problem !== null) throw new Error(problem);
  });
  await holds(t, property, { numRuns: runs > 0 ? runs : 150 });
  t.ok(await isAlive());
});

t.test('any bytes at all', async (t) => {
  const property = fc.asyncProperty(
    fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 4 }),
    async (parts) => {
      const { problem } = await sendRaw(...parts);
      if (problem !== null) throw new Error(problem);
    },
  );
  await holds(t, property, { numRuns: runs > 0 ? runs : 100 });
  t.ok(await isAlive());
});

t.test('a hundred connections that say nothing hold nobody up', async (t) => {
  const silent = Array.from({ length: 100 }, () => openRaw(app.port));
  for (const [n, connection] of silent.entries()) {
    connection.write(
      n % 2 === 0 ? 'GET /livez HT' : writeRequest(register, [json, 'Content-Length: 9']),
    );
  }
  for (let n = 0; n < 20; n += 1) t.ok(await isAlive());
  for (const connection of silent) connection.reset();
  await Promise.all(silent.map(({ closed }) => closed));
  t.ok(await isAlive());
});
