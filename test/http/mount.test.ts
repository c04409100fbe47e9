import { t } from 'tap';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { startToyApp } from '../help/toy-app.js';

/** What is the same for every route: methods, paths, headers, credentials and errors. */

const app = await startToyApp(t);

const isError = (body: unknown, code: string, status: number) => ({
  ...{ error: /^[A-Z].*\.$/, code, status, category: /^[a-z_]+$/ },
  ...{ retryable: status >= 500 || status === 429, request_id: /^[A-Za-z0-9._:-]+$/ },
  ...(body as object),
});

const omitDate = ({ date: _, ...headers }: Readonly<Record<string, string>> = {}) => headers;

t.test('a handler gets decoded parameters, headers and the address', async (t) => {
  const { status, body } = await app.call('GET', '/api/toys/a%20b%2Fc%C3%A9', {
    headers: { 'X-Said': 'hi' },
  });
  t.equal(status, 200);
  t.match(body, { id: 'a b/cé', said: 'hi', ip: /127\.0\.0\.1|::1/, body_digest: '' });
});

t.test('one trailing slash changes nothing', async (t) => {
  t.equal((await app.call('GET', '/api/toys/')).status, 200);
  t.equal((await app.call('GET', '/api/toys/7/')).body.id, '7');
  t.equal((await app.call('GET', '/api/toys//')).status, 404);
});

t.test('an unknown path and a broken escape are 404 as JSON', async (t) => {
  for (const path of ['/', '/nothing', '/api/toys/%zz', '/api/toys/%00', '/api/toys/%ff']) {
    const { status, body, headers } = await app.call('GET', path);
    t.equal(status, 404, path);
    t.match(body, isError({}, 'NOT_FOUND', 404));
    t.equal(headers.get('content-type'), 'application/json');
    t.equal(headers.get('cache-control'), 'no-store');
  }
});

t.test('parameters that cannot name anything are 404 too', async (t) => {
  t.equal((await app.call('GET', `/api/toys/${'x'.repeat(20)}`)).status, 200);
  t.equal((await app.call('GET', `/api/toys/${'x'.repeat(21)}`)).status, 404);
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
  connection.write(writeRequest('GET /api/toys HTTP/1.1', ['If-None-Match: *']));
  t.match(await connection.next(), { status: 304, text: '' });
  connection.write(writeRequest('OPTIONS /api/toys HTTP/1.1'));
  t.match(await connection.next(), { status: 204 });
  connection.write(writeRequest('GET /api/toys HTTP/1.1'));
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
      ...{ Origin: 'https://elsewhere.example', 'Access-Control-Request-Method': 'POST' },
      'Access-Control-Request-Headers': 'content-type, x-api-key',
    },
  });
  t.equal(status, 204);
  t.equal(headers.get('access-control-allow-origin'), '*');
  t.equal(headers.get('access-control-allow-methods'), 'GET, POST, HEAD, OPTIONS');
  t.equal(headers.get('access-control-allow-headers'), 'content-type, x-api-key');
  t.equal(headers.get('access-control-allow-credentials'), null, 'sessions stay same-origin');
  t.equal((await app.call('OPTIONS', '/nothing')).status, 404);
});

t.test('a preflight does not send back whatever was asked', async (t) => {
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
});

t.test('a handler that throws is 500 without a word about why, and the log has it', async (t) => {
  for (const path of ['/throws', '/rejects', '/throws-nothing', '/unsendable', '/breaks-header']) {
    const { status, body } = await app.call('GET', path, {
      headers: { 'X-Request-Id': `r${path.slice(1)}` },
    });
    t.equal(status, 500, path);
    t.same(Object.keys(body).sort(), [
      ...['category', 'code', 'error', 'request_id', 'retryable', 'status'],
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

t.test('a store that is away, or a full queue, is 503 and worth another try', async (t) => {
  for (const path of ['/outage', '/full']) {
    const { status, body, headers } = await app.call('GET', path);
    t.equal(status, 503);
    t.match(body, isError({}, 'UNAVAILABLE', 503));
    t.equal(headers.get('retry-after'), '1');
    t.notMatch(JSON.stringify(body), /10\.0\.0\.3/);
  }
});

t.test('with checks on, an answer that is not as promised is a 500', async (t) => {
  const checked = await startToyApp(t, { check_answers: true });
  t.equal((await checked.call('GET', '/unlisted')).status, 500);
  t.equal((await checked.call('GET', '/misshapen')).status, 500);
  t.equal((await checked.call('GET', '/api/toys')).status, 200);
  t.equal((await checked.call('GET', '/picture')).status, 200);
  t.equal((await checked.call('GET', '/page')).status, 500, 'no word of HTML in the route');
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
  const others = [
    ...[await call('"random"'), await call(etag, '/api/toys?limit=0')],
    ...[await call(etag), await call('*')],
  ];
  t.same(
    others.map(({ status }) => status),
    [200, 400, 429, 429],
    'refusals count, and a limit that is used up refuses whatever is asked',
  );
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
