import { t } from 'tap';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { startToyApp } from '../help/toy-app.js';

/** Bodies and headers at their limits, sent byte by byte. */

const app = await startToyApp(t);
const body_limit = 65_536;
const json = 'Content-Type: application/json';
const post = 'POST /api/toys HTTP/1.1';

/** A body of just so many bytes. */
const bodyOf = (bytes: number): string => `{"name":"${'x'.repeat(bytes - 11)}"}`;
const chunked = (body: string, size: number): string => {
  const chunks: string[] = [];
  for (let at = 0; at < body.length; at += size) {
    const part = body.slice(at, at + size);
    chunks.push(`${part.length.toString(16)}\r\n${part}\r\n`);
  }
  return `${chunks.join('')}0\r\n\r\n`;
};

t.test('a body of exactly the limit is taken, with its length told or in chunks', async (t) => {
  const body = bodyOf(body_limit);
  t.equal(body.length, body_limit);
  const connection = openRaw(app.port);
  connection.write(writeRequest(post, [json, `Content-Length: ${body.length}`], body));
  t.match(await connection.next(), { status: 201, text: `{"length":${body_limit - 11}}` });
  connection.write(writeRequest(post, [json, 'Transfer-Encoding: chunked'], chunked(body, 9_000)));
  t.match(await connection.next(), { status: 201, text: `{"length":${body_limit - 11}}` });
  connection.reset();
});

t.test('a longer one that says so is refused before it is sent', async (t) => {
  const connection = openRaw(app.port);
  connection.write(writeRequest(post, [json, `Content-Length: ${body_limit + 1}`]));
  const answer = await connection.next();
  t.equal(answer?.status, 413);
  t.match(JSON.parse(answer?.text ?? ''), { code: 'BODY_TOO_LARGE', category: 'limit' });
  await connection.closed;
});

t.test('a longer one in chunks is refused when it passes the limit', async (t) => {
  const connection = openRaw(app.port);
  const body = bodyOf(body_limit + 1);
  connection.write(writeRequest(post, [json, 'Transfer-Encoding: chunked'], chunked(body, 9_000)));
  t.equal((await connection.next())?.status, 413);
  await connection.closed;
  t.equal(app.mounted.open.size, 0);
});

t.test('a route may have a limit of its own', async (t) => {
  const connection = openRaw(app.port);
  const tiny = 'POST /api/tiny HTTP/1.1';
  connection.write(writeRequest(tiny, [json, 'Content-Length: 20'], bodyOf(20)));
  t.equal((await connection.next())?.status, 200);
  connection.write(writeRequest(tiny, [json, 'Content-Length: 21'], bodyOf(21)));
  t.equal((await connection.next())?.status, 413);
  await connection.closed;
});

t.test('a body that trickles in byte by byte is read as one', async (t) => {
  const connection = openRaw(app.port);
  const body = '{"name":"bär"}';
  const bytes = writeRequest(post, [json, `Content-Length: ${Buffer.byteLength(body)}`], body);
  // The native parser answers 505 to a first line that comes in pieces.
  const first_line = bytes.indexOf('\n') + 1;
  connection.write(bytes.subarray(0, first_line));
  for (const byte of bytes.subarray(first_line)) {
    connection.write(Uint8Array.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.match(await connection.next(), { status: 201, text: '{"length":3}' });
  connection.reset();
});

t.test('a body that is not JSON, or does not say that it is, is 415', async (t) => {
  const send = (type: string) =>
    app.call('POST', '/api/toys', { body: '{"name":"x"}', headers: { 'content-type': type } });
  const good = ['application/json', 'Application/JSON; charset=utf-8', 'application/ld+json'];
  for (const type of good) t.equal((await send(type)).status, 201, type);
  const bad = ['text/plain', 'application/jsonp', 'application/x-www-form-urlencoded', 'json'];
  for (const type of bad) {
    const { status, body } = await send(type);
    t.equal(status, 415, type);
    t.match(body, { code: 'UNSUPPORTED_MEDIA_TYPE' });
  }
  const connection = openRaw(app.port);
  connection.write(writeRequest(post, ['Content-Length: 12'], '{"name":"x"}'));
  t.equal((await connection.next())?.status, 415, 'no type at all');
  connection.reset();
});

t.test('what JSON it is, is checked before it is looked at', async (t) => {
  const send = (body: string) => app.call('POST', '/api/toys', { body });
  for (const body of ['', '{', '{"name":"\\u0000"}', '{"name":1e999}', '{"__proto__":1}']) {
    const answer = await send(body);
    t.equal(answer.status, 400, body);
    t.match(answer.body, { code: 'INVALID_JSON', error: /^[A-Z].*\.$/ });
  }
  for (const body of ['null', '[]', '"x"', '{}', '{"name":7}']) {
    const answer = await send(body);
    t.equal(answer.status, 400, body);
    t.match(answer.body, { code: 'INVALID_REQUEST', fields: [{ path: /^body/ }] });
  }
});

t.test('a body where none is expected is passed over', async (t) => {
  const connection = openRaw(app.port);
  for (const method of ['GET', 'DELETE']) {
    const lines = ['Content-Type: text/plain', 'Content-Length: 5'];
    connection.write(writeRequest(`${method} /api/toys/7 HTTP/1.1`, lines, 'hello'));
    const answer = await connection.next();
    t.equal(answer?.status, method === 'GET' ? 200 : 204, method);
  }
  connection.write(writeRequest('DELETE /api/toys/7 HTTP/1.1'));
  t.equal((await connection.next())?.status, 204, 'and none at all is fine');
  connection.write(writeRequest('GET /api/toys/8 HTTP/1.1'));
  t.match(await connection.next(), { status: 200, text: /"id":"8"/ }, 'the connection goes on');
  connection.reset();
});

t.test('64 headers are taken and 65 are refused', async (t) => {
  const linesOf = (count: number) => Array.from({ length: count - 1 }, (_, n) => `X-${n}: ${n}`);
  const connection = openRaw(app.port);
  connection.write(writeRequest('GET /api/toys HTTP/1.1', linesOf(64)));
  t.equal((await connection.next())?.status, 200);
  connection.write(writeRequest('GET /api/toys HTTP/1.1', linesOf(65)));
  const refused = await connection.next();
  t.equal(refused?.status, 431);
  t.match(JSON.parse(refused?.text ?? ''), { code: 'HEADERS_TOO_LARGE' });
  await connection.closed;
});
