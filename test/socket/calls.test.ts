import { createHash } from 'node:crypto';
import fc from 'fast-check';
import type { Test } from 'tap';
import { exchange_counters } from '../../src/http/call.js';
import { bodyTextOf } from '../../src/socket/calls.js';
import type { HubLimits } from '../../src/socket/frames.js';
import { holds } from '../help/property.js';
import { type CallSocket, openCalls } from '../help/socket-calls.js';
import { t } from '../help/tap.js';
import { startToyApp, type ToyApp } from '../help/toy-app.js';
import { until } from '../help/until.js';

/** Calls over the socket: behaviour that all routes share, and additions of the socket. */

const app = await startToyApp(t, { sockets: {} });
const mine = { 'x-api-key': 'right' };

t.test('a call is answered as a request is, but for what is only HTTP', async (t) => {
  const socket = await openCalls(t, app.port, mine);
  const body = { name: 'bär' };
  const calls: [string, string, unknown?][] = [
    ['GET', '/api/toys'],
    ['GET', '/api/toys?limit=3'],
    ['GET', '/api/toys?limit=30'],
    ['GET', '/api/toys?limit='],
    ['GET', '/api/toys/'],
    ['GET', '/api/toys/a%20b'],
    ['GET', '/api/toys/%zz'],
    ['GET', `/api/toys/${'x'.repeat(21)}`],
    ['GET', '/api/me/toy'],
    ['GET', '/api/admin/toys'],
    ['GET', `/api/toys?key=sk_${'x'.repeat(30)}`],
    ['GET', '/nowhere'],
    ['PUT', '/api/toys'],
    ['BREW', '/api/toys'],
    ['DELETE', '/api/toys/1'],
    ['POST', '/api/toys', body],
    ['POST', '/api/toys', { name: 7 }],
    ['POST', '/api/toys', []],
    ['POST', '/api/toys', { name: '\u0000' }],
    ['POST', '/api/toys', { name: '\ud800' }],
    ['POST', '/api/tiny', body],
    ['POST', '/api/tiny', { name: 'a name that is too long' }],
    ['GET', '/refuses'],
    ['GET', '/throws'],
    ['GET', '/outage'],
    ['GET', '/unsendable'],
  ];
  const kept = ['etag', 'cache-control', 'content-type', 'retry-after', 'allow', 'ratelimit'];
  for (const [method, path, given] of calls) {
    const what = `${method} ${path} ${JSON.stringify(given) ?? ''}`;
    const sent = given === undefined ? {} : { body: given };
    const there = await app.call(method, path, { headers: mine, ...sent });
    const here = await socket.call(method, path, sent);
    const { request_id: _, ...expected } = there.body;
    t.equal(here.status, there.status, what);
    if (there.body !== '') t.match(here.body, expected, what);
    else t.equal(here.body, '', what);
    for (const name of kept) {
      t.equal(here.headers.get(name), there.headers.get(name), `${what} ${name}`);
    }
  }
  t.equal(app.mounted.open.size, 0);
});

t.test('a handler gets the same context', async (t) => {
  const socket = await openCalls(t, app.port);
  const call = await socket.call('GET', '/api/toys/7', { headers: { 'X-Said': 'hello' } });
  t.match(call.body, { id: '7', ip: '127.0.0.1', said: 'hello', body_digest: '' });
  const text = '{ "name" : "a\\u0062c" , "more": [1, {"body": "]}"}] }';
  const id = socket.nextId();
  const frame = `{"body":${text},"op":"call","id":${id},"route":"GET /api/toys/7"}`;
  const digest = createHash('sha256').update(text).digest('hex');
  t.match(await socket.ask(frame, id), { body: { body_digest: digest } }, 'of the bytes it wrote');
});

t.test('the log line names the socket, and the id of the request is the one sent', async (t) => {
  const socket = await openCalls(t, app.port, mine);
  const headers = { 'x-request-id': 'mine-1' };
  const { headers: got } = await socket.call('GET', '/api/me/toy?x=1', { headers });
  t.equal(got.get('x-request-id'), 'mine-1');
  const line = app.logged.find(({ request_id }) => request_id === 'mine-1');
  t.match(line, { method: 'GET', path: '/api/me/toy', status: 200, caller: 'a1' });
  t.match(line, { socket: /^[\w-]{12}$/ });
});

t.test('a call with the right If-None-Match gets 304, and HEAD has none', async (t) => {
  const socket = await openCalls(t, app.port);
  const first = await socket.call('GET', '/api/toys');
  const headers = { 'if-none-match': first.headers.get('etag') ?? '' };
  t.match(await socket.call('GET', '/api/toys', { headers }), { status: 304, body: '' });
  t.match(await socket.call('HEAD', '/api/toys'), { status: 200, body: '' });
  t.notOk(socket.frames.at(-1)?.['body']);
});

t.test('a text is a text in the reply, and what is none is for HTTP', async (t) => {
  const socket = await openCalls(t, app.port);
  const page = await socket.call('GET', '/page');
  t.match(page, { status: 200, body: '<p>bär</p>' });
  t.equal(page.headers.get('content-type'), 'text/html');
  t.match(await socket.call('GET', '/picture.svg'), { status: 200, body: '<svg/>' });
  for (const path of ['/picture', '/stream', '/big/5000000']) {
    const refused = await socket.call('GET', path);
    t.match(refused, { status: 400, body: { code: 'HTTP_ONLY', request_id: /./ } }, path);
  }
  t.match(await socket.call('GET', '/big/4000000'), { status: 200 });
});

t.test('what is no call is told so, and the socket stays', async (t) => {
  const socket = await openCalls(t, app.port, mine);
  const route = 'GET /api/toys';
  const cases: [Record<string, unknown>, string][] = [
    [{}, 'INVALID_FRAME'],
    [{ route: '/api/toys' }, 'INVALID_FRAME'],
    [{ route: 'GET api/toys' }, 'INVALID_FRAME'],
    [{ route: 'GET /a b' }, 'INVALID_FRAME'],
    [{ route: 'GET /\u0000' }, 'INVALID_FRAME'],
    [{ route: `GET /${'x'.repeat(8_001)}` }, 'INVALID_FRAME'],
    [{ route: 7 }, 'INVALID_FRAME'],
    [{ route, headers: [] }, 'INVALID_FRAME'],
    [{ route, headers: { a: 1 } }, 'INVALID_FRAME'],
    [{ route, headers: { a: 'x\r\ny' } }, 'INVALID_FRAME'],
    [{ route, headers: { a: 'x'.repeat(8_192) } }, 'HEADERS_TOO_LARGE'],
    [
      { route, headers: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`h${n}`, ''])) },
      'HEADERS_TOO_LARGE',
    ],
    ...['X-API-Key', 'authorization', 'x-admin-key', 'Cookie'].map(
      (name): [Record<string, unknown>, string] => [
        { route, headers: { [name]: 'right' } },
        'CREDENTIALS_IN_CALL',
      ],
    ),
  ];
  for (const [frame, code] of cases) {
    const id = socket.nextId();
    const answer = await socket.ask(JSON.stringify({ op: 'call', id, ...frame }), id);
    t.match(answer, { op: 'error', code, retryable: false }, JSON.stringify(frame).slice(0, 60));
  }
  const id = socket.nextId();
  const odd = '{"__proto__":"x","constructor":"x","toString":"x"}';
  const frame = `{"op":"call","id":${id},"route":"GET /api/me/toy","headers":${odd}}`;
  t.match(await socket.ask(frame, id), { op: 'reply', status: 200 });
});

t.test('a call may be larger than other frames, up to its bound', async (t) => {
  const socket = await openCalls(t, app.port);
  const withBody = (bytes: number) =>
    socket.call('POST', '/api/toys', { body: { name: 'x'.repeat(bytes - '{"name":""}'.length) } });
  t.match(await withBody(65_536), { status: 201 });
  t.match(await withBody(65_537), { status: 413, body: { code: 'BODY_TOO_LARGE' } });
  t.match(await withBody(80_000), { status: 413 });
  const large = await openCalls(t, app.port);
  await t.rejects(large.call('POST', '/api/toys', { body: 'x'.repeat(81_920) }));
  t.equal(await large.closed, 4000);
  const ping = await openCalls(t, app.port);
  ping.ws.send(JSON.stringify({ op: 'ping', pad: 'x'.repeat(16_384) }));
  t.equal(await ping.closed, 4000, 'what is no call has the smaller bound');
});

t.test('an admin is one by how the socket was opened', async (t) => {
  const admin = await openCalls(t, app.port, { 'x-admin-key': 'right' });
  t.match(await admin.call('GET', '/api/admin/toys'), { status: 200, body: { secret: true } });
  t.match(await admin.call('GET', '/api/me/toy'), { status: 401 });
  const wrong = await openCalls(t, app.port, { 'x-admin-key': 'wrong' });
  t.equal(await wrong.closed, 4001);
});

t.test('a socket that shows a credential later calls with it from then on', async (t) => {
  const socket = await openCalls(t, app.port);
  t.match(await socket.call('GET', '/api/me/toy'), { status: 401 });
  const id = socket.nextId();
  const authenticated = socket.ask(JSON.stringify({ op: 'auth', id, api_key: 'right' }), id);
  const behind = socket.call('GET', '/api/me/toy');
  t.match(await authenticated, { op: 'authenticated' });
  t.match(await behind, { status: 200, body: { mine: 'Toy agent' } });
});

/** A separate app and socket, for tests that block calls. */
const start = async (t: Test, sockets: Partial<HubLimits> = {}) => {
  const app = await startToyApp(t, { sockets });
  return { app, socket: await openCalls(t, app.port) };
};

t.test('answers come when they are ready', async (t) => {
  const { app, socket } = await start(t);
  const slow = socket.call('GET', '/waits');
  await until('the handler waits', () => app.deps.waiting === 1);
  await socket.call('GET', '/api/toys');
  t.strictSame(socket.replied(), [2]);
  t.equal(app.mounted.open.size, 1);
  app.deps.gate.open();
  t.match(await slow, { status: 200, body: { waited: true } });
  t.strictSame(socket.replied(), [2, 1]);
});

t.test('so many calls may be in flight, and one more is refused', async (t) => {
  const { app, socket } = await start(t);
  const other = await openCalls(t, app.port);
  const held = Array.from({ length: 64 }, () => socket.call('GET', '/waits'));
  await until('all are held', () => app.deps.waiting === 64);
  const { body } = await socket.call('GET', '/api/toys');
  t.match(body, { op: 'error', code: 'TOO_MANY_CALLS', retryable: true });
  t.equal((await other.call('GET', '/api/toys')).status, 200, 'each socket has its own');
  app.deps.gate.open();
  for (const { status } of await Promise.all(held)) t.equal(status, 200);
  t.equal((await socket.call('GET', '/api/toys')).status, 200);
});

t.test('calls are not counted as frames, but refused ones are', async (t) => {
  const { app, socket } = await start(t, { frames_burst: 5, frames_per_s: 0.001, calls: 2 });
  for (let n = 0; n < 20; n += 1) t.equal((await socket.call('GET', '/api/toys')).status, 200);
  const held = [socket.call('GET', '/waits'), socket.call('GET', '/waits')];
  await until('both are held', () => app.deps.waiting === 2);
  for (let n = 0; n < 5; n += 1) {
    t.equal((await socket.call('GET', '/api/toys')).body.code, 'TOO_MANY_CALLS');
  }
  const one_more = socket.call('GET', '/api/toys');
  const ends = await Promise.allSettled([...held, one_more]);
  t.ok(ends.every(({ status }) => status === 'rejected'));
  t.equal(await socket.closed, 4102);
});

t.test('a call that takes too long is 503 at the deadline, and frees its place', async (t) => {
  const app = await startToyApp(t, { sockets: { calls: 1 }, deadline_ms: 200 });
  const socket = await openCalls(t, app.port);
  const before = exchange_counters.late;
  const { status, body, headers } = await socket.call('GET', '/waits');
  t.equal(status, 503);
  t.match(body, { code: 'UNAVAILABLE', retryable: true });
  t.equal(headers.get('retry-after'), '1');
  app.deps.gate.open();
  await until('the late answer', () => exchange_counters.late === before + 1);
  t.equal((await socket.call('GET', '/api/toys')).status, 200);
});

t.test('a socket that goes away while its calls are worked on harms nobody', async (t) => {
  const { app, socket } = await start(t);
  const { aborted, late } = exchange_counters;
  const held = [socket.call('GET', '/waits'), socket.call('GET', '/patient')];
  await until('both are held', () => app.deps.waiting === 2);
  socket.ws.terminate();
  for (const { status } of await Promise.allSettled(held)) t.equal(status, 'rejected');
  await until('the aborts are seen', () => exchange_counters.aborted === aborted + 2);
  t.equal(app.deps.waiting, 1, 'the one that listens has been told');
  t.equal(app.mounted.open.size, 0);
  app.deps.gate.open();
  await until('the answers for nobody', () => exchange_counters.late === late + 2);
  t.equal((await app.call('GET', '/api/toys')).status, 200);
  t.match(
    app.logged.find(({ path }) => path === '/waits'),
    { aborted: true },
  );
});

const length = 400_000;

/** Answers all calls together, to a client that has stopped reading. */
const answerUnread = async (app: ToyApp, socket: CallSocket, count: number) => {
  const calls = Array.from({ length: count }, () => socket.call('GET', `/held/${length}`));
  // Wrapped in an object, so that awaiting it does not await the answers.
  const unread = { ended: Promise.allSettled(calls) };
  await until('all are held', () => app.deps.waiting === count);
  socket.pause();
  app.deps.gate.open();
  await until('all are answered', () => app.logged.length === count);
  return unread;
};

t.test('answers wait for a client that does not read, and no more calls are taken', async (t) => {
  const { app, socket } = await start(t);
  const other = await openCalls(t, app.port);
  const { ended } = await answerUnread(app, socket, 40);
  t.equal(app.mounted.open.size, 0);
  const more = Array.from({ length: 20 }, () => socket.call('GET', '/api/toys'));
  t.equal((await other.call('GET', '/api/toys')).status, 200, 'nobody else notices');
  socket.resume();
  const pads = (await ended).map((end) =>
    end.status === 'fulfilled' ? end.value.body.pad.length : null,
  );
  t.strictSame(pads, Array(40).fill(length), 'every one arrives');
  const codes = (await Promise.all(more)).map(({ body }) => body.code);
  t.strictSame(codes, Array(20).fill('TOO_MANY_CALLS'));
  t.equal((await socket.call('GET', '/api/toys')).status, 200, 'and it goes on');
});

t.test('a client that leaves its replies unread is closed with 4101', async (t) => {
  const { app, socket } = await start(t, { unread_ms: 100 });
  const { ended } = await answerUnread(app, socket, 40);
  await until('it is let go of', () => app.hub?.stats().closed[4101] === 1);
  socket.resume();
  const lost = (await ended).filter(({ status }) => status === 'rejected');
  t.ok(lost.length > 0, 'not every answer has arrived');
  t.equal(app.hub?.stats().sockets, 0);
});

t.test('more replies than a socket may leave unread close it at once', async (t) => {
  const { app, socket } = await start(t, { unread_ms: 3_600_000 });
  const { ended } = await answerUnread(app, socket, 60);
  await until('it is let go of', () => app.hub?.stats().closed[4101] === 1);
  socket.resume();
  t.ok((await ended).some(({ status }) => status === 'rejected'));
});

t.test('a service that stops finishes the calls under way before it says bye', async (t) => {
  const { app, socket } = await start(t);
  const idle = await openCalls(t, app.port);
  const held = socket.call('GET', '/waits');
  await until('it is held', () => app.deps.waiting === 1);
  app.mounted.startDraining();
  const drained = app.hub?.drain();
  t.equal(await idle.closed, 4200);
  t.match(await socket.call('GET', '/api/toys'), { status: 503, body: { code: 'UNAVAILABLE' } });
  app.deps.gate.open();
  t.match(await held, { status: 200 });
  t.equal(await socket.closed, 4200);
  await drained;
  t.equal(app.hub?.stats().sockets, 0);
});

t.test('a socket whose time is over waits for the answers of its calls', async (t) => {
  const lifetime_ms = 300;
  const { app, socket } = await start(t, { lifetime_ms });
  const held = socket.call('GET', '/waits');
  await until('it is held', () => app.deps.waiting === 1);
  // These two sockets end one after another, so more than one lifetime has passed.
  for (let n = 0; n < 2; n += 1) t.equal(await (await openCalls(t, app.port)).closed, 4202);
  t.equal(app.hub?.stats().sockets, 1);
  app.deps.gate.open();
  t.match(await held, { status: 200 });
  t.equal(await socket.closed, 4202);
});

t.test('the text of the body is found wherever it stands', async (t) => {
  const cases: [string, string][] = [
    ['{}', ''],
    [' { } ', ''],
    ['{"body":{}}', '{}'],
    ['{"body":1}', '1'],
    ['{"body": null , "id":1}', 'null'],
    ['\n{\t"id" : 1 ,\r\n "body" : [ 1 , 2 ] }', '[ 1 , 2 ]'],
    ['{"route":"\\"body\\":1","body":"\\\\"}', '"\\\\"'],
    ['{"headers":{"body":"no"},"x":[{"body":1}],"body":{"body":2}}', '{"body":2}'],
    ['{"body":{"a":"}]\\"{"},"id":"body"}', '{"a":"}]\\"{"}'],
    ['{"body":1,"body":2}', '2'],
    ['{"b\\u006fdy":-1.5e3}', '-1.5e3'],
    ['{"x\\u006fdy":1}', ''],
  ];
  for (const [json, body] of cases) t.equal(bodyTextOf(json), body, json);
});

t.test('the text of the body is that of the value that the parser finds', async (t) => {
  const key = fc.oneof(fc.constantFrom('body', 'op', 'id', '"', '\\', ''), fc.string());
  const property = fc.property(
    fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }),
    fc.constantFrom(undefined, 1, '\t'),
    (frame, space) => {
      const found = bodyTextOf(JSON.stringify(frame, null, space));
      const expected = Object.hasOwn(frame, 'body') ? JSON.stringify(frame['body']) : '';
      return (found === '' ? '' : JSON.stringify(JSON.parse(found))) === expected;
    },
  );
  await holds(t, property, { numRuns: 2_000 });
});
