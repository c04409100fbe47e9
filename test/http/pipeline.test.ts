import { parseList } from 'structured-headers';
import { exchange_counters } from '../../src/http/call.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { t } from '../help/tap.js';
import { startToyApp } from '../help/toy-app.js';
import { until } from '../help/until.js';

/** Behaviour that all routes share: methods, paths, headers, bodies, credentials and errors. */

const app = await startToyApp(t);
const json = 'Content-Type: application/json';
const post = 'POST /api/toys HTTP/1.1';
const get = 'GET /api/toys HTTP/1.1';

const isError = (body: unknown, code: string, status: number) => ({
  error: /^[A-Z].*\.$/,
  code,
  status,
  category: /^[a-z_]+$/,
  retryable: status >= 500 || status === 429,
  request_id: /^[A-Za-z0-9._:-]+$/,
  ...(body as object),
});

const omitDate = ({ date: _, ...headers }: Readonly<Record<string, string>> = {}) => headers;

t.test('a handler gets decoded parameters, headers and the address', async (t) => {
  const { status, body } = await app.call('GET', '/api/toys/a%20b%2Fc%C3%A9', {
    headers: { 'X-Said': 'hi' },
  });
  t.equal(status, 200);
  t.match(body, { id: 'a b/cé', said: 'hi', ip: /127\.0\.0\.1|::1/, body_digest: '' });
  t.equal((await app.call('GET', `/api/toys/${'x'.repeat(20)}/`)).status, 200, 'and a last slash');
});

t.test('an unknown path, a broken escape and parameters that name nothing are 404', async (t) => {
  const of_toys = ['%zz', '%00', '%ff', '/', 'x'.repeat(21)].map((id) => `/api/toys/${id}`);
  for (const path of ['/', '/nothing', ...of_toys]) {
    const { status, body, headers } = await app.call('GET', path);
    t.equal(status, 404, path);
    t.match(body, isError({}, 'NOT_FOUND', 404));
    t.equal(headers.get('content-type'), 'application/json');
    t.equal(headers.get('cache-control'), 'no-store');
  }
});

t.test('HEAD answers what GET answers, without the body', async (t) => {
  const connection = openRaw(app.port);
  const statuses = [
    ['/api/toys', 200],
    ['/api/toys/7', 200],
    ['/picture', 200],
    ['/nothing', 404],
    ['/refuses', 400],
  ] as const;
  for (const [path, status] of statuses) {
    connection.write(writeRequest(`GET ${path} HTTP/1.1`, ['X-Request-Id: one']));
    const got = await connection.next();
    connection.write(writeRequest(`HEAD ${path} HTTP/1.1`, ['X-Request-Id: one']));
    const head = await connection.next({ head: true });
    t.equal(got?.status, status, path);
    t.equal(head?.status, status, path);
    t.same(omitDate(head?.headers), omitDate(got?.headers), path);
    t.equal(connection.rest, '', 'nothing follows the head');
  }
  connection.write(writeRequest('HEAD /api/tiny HTTP/1.1'));
  t.equal((await connection.next({ head: true }))?.status, 405);
  connection.reset();
});

t.test('an answer without a body leaves the connection usable', async (t) => {
  const connection = openRaw(app.port);
  connection.write(writeRequest('DELETE /api/toys/7 HTTP/1.1'));
  const gone = await connection.next();
  t.match(gone, { status: 204, text: '' });
  t.equal(gone?.headers['content-length'], undefined);
  connection.write(writeRequest(get, ['If-None-Match: *']));
  t.match(await connection.next(), { status: 304, text: '' });
  connection.write(writeRequest('OPTIONS /api/toys HTTP/1.1'));
  t.match(await connection.next(), { status: 204 });
  connection.write(writeRequest(get));
  t.match(await connection.next(), { status: 200 });
  connection.reset();
});

t.test('another method on a known path is 405 and names those it takes', async (t) => {
  const { status, body, headers } = await app.call('PUT', '/api/toys');
  t.equal(status, 405);
  t.equal(headers.get('allow'), 'GET, POST, HEAD, OPTIONS');
  t.match(body, isError({}, 'METHOD_NOT_ALLOWED', 405));
  t.equal((await app.call('GET', '/api/tiny')).headers.get('allow'), 'POST, OPTIONS');
  const connection = openRaw(app.port);
  for (const method of ['BREW', 'get', 'TRACE', 'PROPFIND']) {
    connection.write(writeRequest(`${method} /api/toys HTTP/1.1`));
    t.equal((await connection.next())?.status, 405, method);
  }
  connection.reset();
});

t.test('a preflight is answered on every path that exists', async (t) => {
  const { status, headers } = await app.call('OPTIONS', '/api/toys', {
    headers: {
      Origin: 'https://elsewhere.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'content-type, x-api-key',
    },
  });
  t.equal(status, 204);
  t.equal(headers.get('access-control-allow-origin'), '*');
  t.equal(headers.get('access-control-allow-methods'), 'GET, POST, HEAD, OPTIONS');
  t.equal(headers.get('access-control-allow-headers'), 'content-type, x-api-key');
  t.equal(headers.get('access-control-allow-credentials'), null, 'sessions stay same-origin');
  t.equal((await app.call('OPTIONS', '/nothing')).status, 404);
  // The requested value is never echoed.
  for (const asked of ['<script>', 'a'.repeat(501), 'x;y']) {
    const { headers } = await app.call('OPTIONS', '/api/toys', {
      headers: { 'Access-Control-Request-Headers': asked },
    });
    t.match(headers.get('access-control-allow-headers'), /^Content-Type, X-API-Key/);
  }
});

t.test('every answer may be read from another site, refusals too', async (t) => {
  for (const path of ['/api/toys', '/nothing', '/refuses', '/throws', '/api/me/toy']) {
    const { headers } = await app.call('GET', path);
    t.equal(headers.get('access-control-allow-origin'), '*', path);
    t.match(headers.get('access-control-expose-headers'), /X-Request-Id/);
  }
});

t.test('a sane request id is sent back, another one is replaced', async (t) => {
  const idOf = async (given: string) => {
    const { headers, body } = await app.call('GET', '/refuses', {
      headers: { 'X-Request-Id': given },
    });
    t.equal(headers.get('x-request-id'), body.request_id);
    return body.request_id;
  };
  const longest = 'x'.repeat(128);
  for (const sane of ['a', 'trace:01.b_c-D', longest]) t.equal(await idOf(sane), sane);
  for (const odd of [`${longest}x`, 'a b', 'ü', '"', 'a,b', '']) t.not(await idOf(odd), odd);
  t.not(await idOf(''), await idOf(''), 'each its own');
});

t.test('an ETag that the client has is 304 without a body', async (t) => {
  const first = await app.call('GET', '/api/toys');
  const etag = first.headers.get('etag') ?? '';
  t.match(etag, /^W\/"[\w-]+"$/);
  t.equal(first.headers.get('cache-control'), 'public, no-cache');
  const strong = etag.slice(2);
  const ask = (tag: string, path = '/api/toys') =>
    app.call('GET', path, { headers: { 'If-None-Match': tag } });
  const having = [etag, strong, `"x", ${etag}`, `W/"a,b",${strong} , "y"`, `, ,${etag}`];
  for (const tag of [...having, '*', ' * ']) {
    const again = await ask(tag);
    t.equal(again.status, 304, tag);
    t.equal(again.body, '');
    t.equal(again.headers.get('etag'), etag);
    t.equal(again.headers.get('cache-control'), 'public, no-cache');
    t.equal(again.headers.get('content-type'), null);
  }
  const others = ['"x"', '', `${etag}x`, strong.slice(1, -1), `x ${etag}`, `w/${strong}`, '"*"'];
  for (const tag of [...others, `"x${strong}`]) {
    t.equal((await ask(tag)).status, 200, tag);
  }
  const head = await app.call('HEAD', '/api/toys', { headers: { 'If-None-Match': strong } });
  t.equal(head.status, 304);
  t.equal((await ask(etag, '/api/toys?limit=3')).status, 200, 'another answer, another tag');
  t.equal(
    (await app.call('GET', '/api/toys/7')).headers.get('etag'),
    null,
    'only where it is said',
  );
});

t.test('private answers and writes are not to be stored', async (t) => {
  const mine = await app.call('GET', '/api/me/toy', { key: 'right' });
  t.equal(mine.headers.get('cache-control'), 'no-store');
  const toys = await app.call('GET', '/api/toys', { key: 'right' });
  t.equal(toys.headers.get('cache-control'), 'private, no-cache', 'perhaps not what others see');
  const made = await app.call('POST', '/api/toys', { body: { name: 'x' } });
  t.equal(made.headers.get('cache-control'), 'no-store');
});

t.test('a write that was carried out is reported, a read and a refusal are not', async (t) => {
  const before = app.deps.written;
  await app.call('GET', '/api/toys');
  t.equal((await app.call('POST', '/api/toys', { body: {} })).status, 400);
  t.equal(app.deps.written, before);
  t.equal((await app.call('POST', '/api/toys', { body: { name: 'one' } })).status, 201);
  t.equal(app.deps.written, before + 1);
});

t.test('who may not is told why', async (t) => {
  const codeOf = async (options: object, path = '/api/me/toy') => {
    const { status, body } = await app.call('GET', path, options);
    return [status, body.code];
  };
  t.same(await codeOf({}), [401, 'MISSING_AUTH']);
  t.same(await codeOf({ key: 'wrong' }), [401, 'INVALID_API_KEY']);
  t.same(await codeOf({ token: 'wrong' }), [401, 'INVALID_TOKEN']);
  t.same(await codeOf({ key: 'right', token: 'x' }), [400, 'AMBIGUOUS_AUTH']);
  const key = `sk_${'a'.repeat(49)}`;
  for (const query of [`?${key}`, `?key=${key}`, `?a=1&api_key=${key}`]) {
    t.same(await codeOf({}, `/api/toys${query}`), [400, 'KEY_IN_QUERY'], query);
  }
  t.same(await codeOf({ key: 'wrong' }, '/api/toys'), [401, 'INVALID_API_KEY'], 'public too');
});

t.test('admin paths do not tell that they are there', async (t) => {
  const nowhere = (await app.call('GET', '/api/admin/nothing')).body;
  const attempts = [{}, { key: 'right' }, { key: 'wrong' }, { token: 'x', key: 'right' }];
  for (const options of attempts) {
    for (const method of ['GET', 'PUT', 'POST', 'DELETE']) {
      const { status, body, headers } = await app.call(method, '/api/admin/toys', options);
      t.equal(status, 404);
      t.same({ ...body, request_id: '' }, { ...nowhere, request_id: '' });
      t.equal(headers.get('allow'), null);
    }
  }
  const admin = { headers: { 'X-Admin-Key': 'right' } };
  t.equal((await app.call('GET', '/api/admin/toys', admin)).status, 200);
  t.equal((await app.call('PUT', '/api/admin/toys', admin)).status, 405);
});

t.test('a refusal has the shape of the contract and what the handler adds', async (t) => {
  const { status, body } = await app.call('GET', '/refuses');
  t.equal(status, 400);
  t.match(body, isError({ hint: 1 }, 'INVALID_REQUEST', 400));
  for (const path of ['/outage', '/full']) {
    const away = await app.call('GET', path);
    t.equal(away.status, 503, 'a store that is away, or a full queue');
    t.match(away.body, isError({}, 'UNAVAILABLE', 503));
    t.equal(away.headers.get('retry-after'), '1');
    t.notMatch(JSON.stringify(away.body), /10\.0\.0\.3/);
  }
});

t.test('a handler that throws is 500 without a word about why, and the log has it', async (t) => {
  for (const path of ['/throws', '/rejects', '/throws-nothing', '/unsendable', '/breaks-header']) {
    const { status, body } = await app.call('GET', path, {
      headers: { 'X-Request-Id': `r${path.slice(1)}` },
    });
    t.equal(status, 500, path);
    t.same(Object.keys(body).sort(), [
      'category',
      'code',
      'error',
      'request_id',
      'retryable',
      'status',
    ]);
    t.match(body, isError({}, 'INTERNAL', 500));
    t.notMatch(JSON.stringify(body), /secret|passwd|42P01|BigInt/);
    const line = app.logged.find(
      (entry) => entry['request_id'] === `r${path.slice(1)}` && entry['level'] === 50,
    );
    t.ok(line, `${path} is in the log as an error`);
  }
});

t.test('an answer that breaks off while it is written ends the connection', async (t) => {
  const connection = openRaw(app.port);
  connection.write(writeRequest('GET /wrong-body HTTP/1.1', ['X-Request-Id: broken']));
  t.equal(await connection.next(), null);
  t.ok(app.logged.some((line) => line['request_id'] === 'broken' && line['level'] === 50));
  t.equal(app.mounted.open.size, 0);
});

t.test('with checks on, an answer that is not as promised is a 500', async (t) => {
  const checked = await startToyApp(t, { check_answers: true });
  for (const path of ['/unlisted', '/misshapen', '/page']) {
    t.equal((await checked.call('GET', path)).status, 500, path);
  }
  for (const path of ['/api/toys', '/picture']) {
    t.equal((await checked.call('GET', path)).status, 200, path);
  }
  t.equal((await app.call('GET', '/unlisted')).status, 202, 'off in service');
});

t.test('a limit that is used up is 429 with the seconds to wait', async (t) => {
  const windows = [
    { name: 'ip', key: 'ip:x', limit: 9, window_ms: 60_000 },
    { name: 'toys', key: 'toys:x', limit: 2, window_ms: 30_000 },
  ];
  const limited = await startToyApp(t, { windows });
  const call = () => limited.call('GET', '/api/toys');
  for (const left of [1, 0]) {
    const { status, headers } = await call();
    t.equal(status, 200);
    t.equal(headers.get('ratelimit-policy'), '"ip";q=9;w=60, "toys";q=2;w=30');
    t.match(headers.get('ratelimit'), new RegExp(`"toys";r=${left};t=(30|29)$`));
  }
  const { status, headers, body } = await call();
  t.equal(status, 429);
  t.match(body, isError({}, 'RATE_LIMITED', 429));
  t.match(headers.get('retry-after'), /^(30|29)$/);
  t.match(headers.get('ratelimit'), /^"ip";r=7;t=\d+, "toys";r=0;t=(30|29)$/, 'nothing consumed');
});

t.test('the headers of limits are structured fields as in draft 11 of the IETF', async (t) => {
  const windows = [
    { name: 'ip', key: 'ip:x', limit: 9, window_ms: 60_000 },
    { name: 'toys', key: 'toys:x', limit: 1, window_ms: 30_000 },
  ];
  const limited = await startToyApp(t, { windows });
  for (const wanted of [200, 429]) {
    const { status, headers } = await limited.call('GET', '/api/toys');
    t.equal(status, wanted);
    const policies = parseList(headers.get('ratelimit-policy') ?? '');
    t.same(
      policies.map(([name, members]) => [name, ...members]),
      [
        ['ip', ['q', 9], ['w', 60]],
        ['toys', ['q', 1], ['w', 30]],
      ],
    );
    const limits = parseList(headers.get('ratelimit') ?? '');
    t.same(
      limits.map(([name]) => name),
      policies.map(([name]) => name),
      'each limit names its policy',
    );
    for (const [, members] of limits) {
      t.same([...members.keys()], ['r', 't']);
      for (const value of members.values()) t.ok(Number.isInteger(value) && Number(value) >= 0);
    }
    if (status !== 429) continue;
    const [, used_up] = limits[1] ?? [];
    const wait = Number(headers.get('retry-after'));
    t.ok(wait >= Number(used_up?.get('t')), 'not before the end of the window that is used up');
  }
});

t.test('a 304 costs no limit, and is no way past one', async (t) => {
  const windows = [{ name: 'ip', key: 'ip:x', limit: 3, window_ms: 60_000 }];
  const limited = await startToyApp(t, { windows });
  const call = (tag: string, path = '/api/toys') =>
    limited.call('GET', path, { headers: { 'If-None-Match': tag } });
  const etag = (await call('"none"')).headers.get('etag') ?? '';
  const left = (headers: Headers) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1];
  for (let n = 0; n < 20; n += 1) {
    const { status, headers } = await call(etag);
    t.equal(status, 304);
    t.equal(left(headers), '2');
    t.equal(headers.get('ratelimit-policy'), '"ip";q=3;w=60');
  }
  t.equal((await call('"random"')).status, 200);
  t.equal((await call(etag, '/api/toys?limit=0')).status, 400, 'refusals count');
  for (const tag of [etag, '*']) t.equal((await call(tag)).status, 429, 'used up is used up');
});

t.test('each request is one line of the log, without its credentials', async (t) => {
  await app.call('GET', '/api/me/toy?x=1', {
    key: 'right',
    headers: { 'X-Request-Id': 'one-line' },
  });
  const lines = app.logged.filter((entry) => entry['request_id'] === 'one-line');
  t.equal(lines.length, 1);
  t.match(lines[0], { method: 'GET', path: '/api/me/toy', status: 200, caller: 'a1', ms: Number });
  t.notMatch(JSON.stringify(lines), /right|x=1/);
});

const body_limit = 65_536;

/** A body of exactly this many bytes. */
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

t.test('one more byte is refused: unsent, in chunks, and by a limit of the route', async (t) => {
  const in_chunks = chunked(bodyOf(body_limit + 1), 9_000);
  for (const bytes of [
    writeRequest(post, [json, `Content-Length: ${body_limit + 1}`]),
    writeRequest(post, [json, 'Transfer-Encoding: chunked'], in_chunks),
    writeRequest('POST /api/tiny HTTP/1.1', [json, 'Content-Length: 21'], bodyOf(21)),
  ]) {
    const connection = openRaw(app.port);
    connection.write(bytes);
    const answer = await connection.next();
    t.equal(answer?.status, 413);
    t.match(JSON.parse(answer?.text ?? ''), { code: 'BODY_TOO_LARGE', category: 'limit' });
    await connection.closed;
  }
  t.equal((await app.call('POST', '/api/tiny', { body: bodyOf(20) })).status, 200);
  t.equal(app.mounted.open.size, 0);
});

t.test('a body that trickles in byte by byte is read as one', async (t) => {
  const connection = openRaw(app.port);
  const body = '{"name":"bär"}';
  const bytes = writeRequest(post, [json, `Content-Length: ${Buffer.byteLength(body)}`], body);
  // The native parser answers 505 to a first line that arrives in pieces.
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
    t.match(await send(type), { status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } }, type);
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
    t.equal((await connection.next())?.status, method === 'GET' ? 200 : 204, method);
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
  connection.write(writeRequest(get, linesOf(64)));
  t.equal((await connection.next())?.status, 200);
  connection.write(writeRequest(get, linesOf(65)));
  const refused = await connection.next();
  t.equal(refused?.status, 431);
  t.match(JSON.parse(refused?.text ?? ''), { code: 'HEADERS_TOO_LARGE' });
  await connection.closed;
});

const waits = writeRequest('GET /waits HTTP/1.1');
const slow_lines = [json, 'Content-Length: 100'];

t.test('a handler that is late is 503 at the deadline, and its answer is dropped', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 200 });
  const { expired, late } = exchange_counters;
  const { status, body, headers } = await app.call('GET', '/waits');
  t.equal(status, 503);
  t.match(body, { code: 'UNAVAILABLE', retryable: true });
  t.equal(headers.get('retry-after'), '1');
  t.equal(exchange_counters.expired, expired + 1);
  t.equal(app.mounted.open.size, 0);
  app.deps.gate.open();
  await until('the late answer', () => exchange_counters.late === late + 1);
  t.equal((await app.call('GET', '/waits')).status, 200, 'in time it is sent');
});

t.test('a body that does not arrive in time is 408, for the client is late', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 200 });
  const connection = openRaw(app.port);
  connection.write(writeRequest(post, slow_lines, '{"name":"x'));
  const answer = await connection.next();
  t.equal(answer?.status, 408);
  t.match(JSON.parse(answer?.text ?? ''), { code: 'REQUEST_TIMEOUT', retryable: true });
  await connection.closed;
  t.equal(app.mounted.open.size, 0);
});

t.test('clients that go away while a handler works, or in their body, leave nothing', async (t) => {
  const app = await startToyApp(t);
  const { aborted, late } = exchange_counters;
  const connections = Array.from({ length: 101 }, () => openRaw(app.port));
  const [in_body, ...waiting] = connections;
  in_body?.write(writeRequest(post, slow_lines, '{"name":"x'));
  for (const connection of waiting) connection.write(waits);
  await until('all handlers wait', () => app.deps.waiting === 100);
  await until('all requests are open', () => app.mounted.open.size === 101);
  for (const connection of connections) connection.reset();
  await until('all aborts are seen', () => exchange_counters.aborted === aborted + 101);
  t.equal(app.mounted.open.size, 0);
  app.deps.gate.open();
  await until('all answers for nobody', () => exchange_counters.late === late + 100);
  t.equal((await app.call('GET', '/api/toys')).status, 200);
  t.match(app.logged.at(-2), { path: '/waits', aborted: true });
});

t.test('of requests sent ahead the first is answered, and nothing breaks', async (t) => {
  const connection = openRaw(app.port);
  const ahead = Array.from({ length: 5 }, (_, n) => writeRequest(`GET /api/toys/${n} HTTP/1.1`));
  connection.write(Buffer.concat(ahead));
  const answers: (string | undefined)[] = [];
  for (let answer = await connection.next(); answer !== null; answer = await connection.next()) {
    answers.push(/"id":"(\d)"/.exec(answer.text)?.[1]);
    if (answers.length === ahead.length) connection.reset();
  }
  // uWS closes a connection that sends another request before the first is answered.
  t.same(answers, ['0', '1', '2', '3', '4'].slice(0, answers.length));
  t.equal((await app.call('GET', '/api/toys')).status, 200);
});

t.test('while it drains, what is open is finished and what is new is refused', async (t) => {
  const app = await startToyApp(t);
  const slow = app.call('GET', '/waits');
  await until('the handler waits', () => app.deps.waiting === 1);
  for (let n = 0; n < 20; n += 1) t.equal((await app.call('GET', '/api/toys')).status, 200);
  app.mounted.startDraining();
  t.match(await app.call('GET', '/api/toys'), { status: 503, body: { code: 'UNAVAILABLE' } });
  t.equal(app.mounted.open.size, 1);
  app.deps.gate.open();
  t.equal((await slow).status, 200);
  t.equal(app.mounted.open.size, 0);
});
