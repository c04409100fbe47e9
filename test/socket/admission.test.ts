import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import type { Test } from 'tap';
import { range, startHub } from '../help/hub.js';
import { pluck } from '../help/pluck.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Client, connect } from '../help/ws-client.js';
import { makeRawFrame, openRaw, type RawSocket } from './raw-ws.js';

const subscribe_me = { op: 'subscribe', id: 'me', topics: ['me'] };

/** Waits until the server has read everything that was sent: it answers protocol pings in order. */
const arrived = async ({ ws }: Client): Promise<void> => {
  ws.ping();
  await once(ws, 'pong');
};

t.test('a key on the upgrade, in either header, gives its agent the private topic', async (t) => {
  const { port, publish } = await startHub(t);
  const by_key = await connect(t, port, { headers: { 'x-api-key': 'key-a' } });
  const by_token = await connect(t, port, { headers: { authorization: 'Bearer key-a' } });
  const other = await connect(t, port, { headers: { 'x-api-key': 'key-b' } });
  const nobody = await connect(t, port);
  for (const socket of [by_key, by_token, other, nobody]) socket.send(subscribe_me);
  t.match(await by_key.answer('me'), { op: 'subscribed', topics: ['me'] });
  t.match(await by_token.answer('me'), { op: 'subscribed' });
  t.match(await other.answer('me'), { op: 'subscribed' });
  t.match(await nobody.answer('me'), { op: 'error', code: 'MISSING_AUTH', retryable: false });
  publish(1, ['me:a']);
  publish(1, ['me:b']);
  await until('all have come', () => other.events().length + by_key.events().length === 2);
  t.strictSame(by_key.offsets(), [1]);
  t.equal(by_key.events()[0]?.topic, 'me', 'the frame names the topic as the client does');
  t.strictSame(other.offsets(), [2]);
  t.match(by_key.frames[0], { op: 'welcome', as: 'agent', limits: { topics: 1_000 } });
});

t.test('a first frame can authenticate, and what follows it at once counts for it', async (t) => {
  const { port, publish, holdLookups } = await startHub(t);
  const socket = await connect(t, port);
  const release = holdLookups();
  socket.send({ op: 'auth', id: 1, api_key: 'slow-key-a' });
  socket.send(subscribe_me);
  socket.send({ op: 'ping', id: 2 });
  await arrived(socket);
  release();
  await socket.answer(2);
  t.strictSame(
    pluck(socket.frames, 'op'),
    ['welcome', 'authenticated', 'subscribed', 'pong'],
    'in the order in which they were sent',
  );
  t.strictSame(await socket.answer(1), { op: 'authenticated', id: 1, as: 'agent' });
  publish(1, ['me:a']);
  await until('the event', () => socket.events().length === 1);
  t.match(await socket.ask({ op: 'auth', token: 'key-b' }), {
    op: 'error',
    code: 'ALREADY_AUTHENTICATED',
  });
});

t.test('more frames than are held while a key is looked up close the socket', async (t) => {
  const { port, holdLookups } = await startHub(t, { frames_burst: 1_000 });
  const release = holdLookups();
  const fits = await connect(t, port);
  const over = await connect(t, port);
  for (const [socket, count] of [
    [fits, 128],
    [over, 129],
  ] as const) {
    socket.send({ op: 'auth', id: 'auth', api_key: 'slow-key-a' });
    for (let i = 1; i <= count; i += 1) socket.send({ op: 'ping', id: i });
  }
  t.equal(await over.closed(), 4102);
  await arrived(fits);
  release();
  t.match(await fits.answer(128), { op: 'pong' });
});

t.test('frames that come before the welcome are taken after it', async (t) => {
  const { port, holdLookups } = await startHub(t);
  const release = holdLookups();
  const socket = await connect(t, port, { headers: { 'x-api-key': 'slow-key-a' } });
  socket.send({ op: 'ping', id: 1 });
  socket.send({ op: 'no such op', id: 2 });
  socket.send(subscribe_me);
  await arrived(socket);
  t.strictSame(socket.frames, [], 'no frame is answered before the caller is known');
  release();
  await socket.answer('me');
  t.strictSame(pluck(socket.frames, 'op'), ['welcome', 'pong', 'error', 'subscribed']);
});

t.test('"Connection: close" is about the request, not about the websocket', async (t) => {
  const { port } = await startHub(t);
  const socket = await openRaw(port, { connection: 'close' });
  t.teardown(() => socket.destroy());
  socket.write(makeRawFrame('{"op":"ping","id":1}', { opcode: 1 }));
  await until('an answer', () => socket.texts.length === 2);
  t.match(socket.texts[1], /"op":"pong"/);
});

t.test('refused credentials are told by a frame and a close code', async (t) => {
  const { port, hub } = await startHub(t);
  const cases = [
    [{ 'x-api-key': 'wrong' }, 4001, 'INVALID_API_KEY', false],
    [{ 'x-api-key': 'key-a', authorization: 'Bearer key-a' }, 4001, 'AMBIGUOUS_AUTH', false],
    [{ authorization: 'Bearer suspended' }, 4003, 'ACCOUNT_SUSPENDED', false],
    [{ 'x-api-key': 'down' }, 4100, 'UNAVAILABLE', true],
  ] as const;
  for (const [headers, close_code, code, retryable] of cases) {
    const socket = await connect(t, port, { headers });
    t.equal(await socket.closed(), close_code, code);
    t.match(socket.frames, [{ op: 'error', code, retryable }]);
    t.equal(socket.frames.length, 1, 'and by nothing else');
  }
  for (const [frame, close_code] of [
    [{ op: 'auth', id: 1, api_key: 'wrong' }, 4001],
    [{ op: 'auth', id: 1, token: 'suspended' }, 4003],
    [{ op: 'auth', id: 1, token: 'down' }, 4100],
  ] as const) {
    const socket = await connect(t, port);
    socket.send(frame);
    t.match(await socket.answer(1), { op: 'error' });
    t.equal(await socket.closed(), close_code);
  }
  const token = await connect(t, port, { path: '/ws?token=wrong' });
  t.equal(await token.closed(), 4001);
  t.equal(hub.stats().sockets, 0);
});

t.test('an auth frame without a credential, or with two, leaves the socket open', async (t) => {
  const { port } = await startHub(t);
  const socket = await connect(t, port);
  t.match(await socket.ask({ op: 'auth' }), { op: 'error', code: 'MISSING_AUTH' });
  t.match(await socket.ask({ op: 'auth', api_key: 'key-a', token: 'key-a' }), {
    op: 'error',
    code: 'AMBIGUOUS_AUTH',
  });
  t.match(await socket.ask({ op: 'auth', api_key: 'x'.repeat(513) }), {
    op: 'error',
    code: 'INVALID_FRAME',
  });
  t.match(await socket.ask({ op: 'auth', api_key: 'key-a' }), { op: 'authenticated' });
});

t.test('who only listens gets everything by ?token=, until it subscribes', async (t) => {
  const { port, publish, logged } = await startHub(t);
  const listener = await connect(t, port, { path: '/ws?token=key-a' });
  const chooser = await connect(t, port, { path: '/ws?x=1&token=key-b' });
  const header = await connect(t, port, {
    path: '/ws?token=key-b',
    headers: { 'x-api-key': 'key-c' },
  });
  await chooser.get('welcome', ({ op }) => op === 'welcome');
  await header.get('welcome', ({ op }) => op === 'welcome');
  await chooser.subscribe(['b']);
  publish(1, ['all', 'b']);
  publish(1, ['me:a']);
  publish(1, ['me:b']);
  publish(1, ['all']);
  await until('all have come', () => listener.events().length === 3);
  t.strictSame(listener.offsets(), [1, 2, 4]);
  t.match(listener.events()[0], { event: 'test', data: { n: 1 } }, 'as {event, data}');
  await until('its own', () => chooser.events().length === 1);
  t.strictSame(chooser.offsets(), [1], 'the default topics are gone');
  t.strictSame(header.offsets(), [], 'a header counts more, and gives no default topics');
  t.notMatch(logged.join('\n'), /key-/);
});

t.test('a listener without a word is not sent away, an anonymous one is', async (t) => {
  const { port } = await startHub(t, { hello_ms: 200 });
  const silent = await connect(t, port);
  const token = await connect(t, port, { path: '/ws?token=key-a' });
  const speaks = await connect(t, port);
  speaks.send({ op: 'subscribe', id: 1, topics: ['all'] });
  t.equal(await silent.closed(), 4008);
  t.match(silent.frames.at(-1), { op: 'error', code: 'AUTH_TIMEOUT' });
  token.send({ op: 'ping', id: 1 });
  await Promise.all([token.answer(1), speaks.ask({ op: 'ping' })]);
});

t.test('a client that leaves while it is looked up is forgotten', async (t) => {
  const { port, hub, holdLookups } = await startHub(t, { connections_ip: 1 });
  const release = holdLookups();
  const head =
    'GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
    'X-API-Key: slow-key-a\r\n\r\n';
  for (let i = 0; i < 5; i += 1) {
    await new Promise<void>((resolve) => {
      const tcp = connectTcp(port, '127.0.0.1', () => tcp.write(head, () => tcp.destroy()));
      tcp.on('close', () => resolve());
    });
  }
  release();
  await until('there is room again', async () => {
    const socket = await connect(t, port, { headers: { 'x-api-key': 'key-b' } });
    await until('an answer', () => socket.frames.length > 0);
    const welcome = socket.frames[0]?.op === 'welcome';
    socket.ws.close();
    return welcome;
  });
  await until('all gone', () => hub.stats().sockets === 0);
});

t.test('nobody is let in before the hub knows where the log stands', async (t) => {
  const { port, hub } = await startHub(t);
  hub.begin(-1);
  const socket = await connect(t, port);
  t.equal(await socket.closed(), 4100);
  t.match(socket.frames, [{ op: 'error', code: 'UNAVAILABLE', retryable: true }]);
});

t.test('a request that is no upgrade is not taken by the sockets', async (t) => {
  const { port, hub } = await startHub(t);
  t.equal((await fetch(`http://127.0.0.1:${port}/ws`)).status, 404);
  t.equal(hub.stats().opened, 0);
});

t.test('a burst may have 100 frames, and then twenty a second', async (t) => {
  const { port } = await startHub(t);
  const socket = await connect(t, port);
  for (const id of range(1, 100)) socket.send({ op: 'ping', id });
  await socket.answer(100);
  const over = await connect(t, port);
  for (const id of range(1, 115)) over.send({ op: 'ping', id });
  t.equal(await over.closed(), 4102);
  const answered = over.frames.filter(({ op }) => op === 'pong').length;
  t.ok(answered >= 100 && answered < 115, `${answered} were answered`);
});

t.test('pings and pongs of the protocol count as frames', async (t) => {
  const { port } = await startHub(t);
  for (const send of ['ping', 'pong'] as const) {
    const socket = await connect(t, port);
    for (const _ of range(1, 99)) socket.ws[send]();
    t.match(await socket.ask({ op: 'ping' }), { op: 'pong' }, `99 of ${send}, and a frame`);
    const over = await connect(t, port);
    for (const _ of range(1, 115)) over.ws[send]();
    t.equal(await over.closed(), 4102, send);
  }
});

t.test('one key may have 20 sockets, however it was shown', async (t) => {
  const { port, hub } = await startHub(t);
  const headers = { 'x-api-key': 'key-a' };
  const sockets = await Promise.all(range(1, 20).map(() => connect(t, port, { headers })));
  const refused = await connect(t, port, { headers });
  t.equal(await refused.closed(), 4104);
  const bye = { op: 'bye', code: 4104, reason: 'TOO_MANY_CONNECTIONS', retry_after_ms: 4_000 };
  t.strictSame(refused.frames, [bye]);
  const by_frame = await connect(t, port);
  by_frame.send({ op: 'auth', id: 1, api_key: 'key-a' });
  t.equal(await by_frame.closed(), 4104);
  const other = await connect(t, port, { headers: { 'x-api-key': 'key-b' } });
  t.equal((await other.get('welcome', () => true)).op, 'welcome');
  t.equal(hub.stats().sockets, 21);
  sockets[0]?.ws.close();
  await sockets[0]?.closed();
  const again = await connect(t, port, { headers });
  t.equal((await again.get('welcome', () => true)).op, 'welcome');
});

t.test('one address may have 200 sockets', async (t) => {
  const { port, hub } = await startHub(t);
  const sockets = await Promise.all(range(1, 200).map(() => connect(t, port)));
  const refused = await connect(t, port);
  t.equal(await refused.closed(), 4104);
  t.equal(hub.stats().sockets, 200);
  sockets[0]?.ws.close();
  await sockets[0]?.closed();
  const again = await connect(t, port);
  t.equal((await again.get('welcome', () => true)).op, 'welcome');
});

/** Tries until it is admitted. Returns how many times it was refused. */
const comeBack = async (t: Test, port: number, headers: Record<string, string>) => {
  let refusals = 0;
  await until('a place', async () => {
    const socket = await connect(t, port, { headers });
    const { op } = await socket.get('an answer', () => true);
    if (op === 'welcome') return true;
    t.equal(await socket.closed(), 4104);
    refusals += 1;
    return false;
  });
  return refusals;
};

t.test('clients that vanished give their places back when these are needed', async (t) => {
  const limits = { connections_key: 3, connections_ip: 4, alive_ms: 300 };
  const { port, hub } = await startHub(t, limits);
  const headers = { 'x-api-key': 'key-a' };
  const living = await connect(t, port, { headers });
  const gone: RawSocket[] = [];
  for (const key of ['key-a', 'key-a', 'key-c']) {
    gone.push(await openRaw(port, { path: `/ws?token=${key}` }));
  }
  await until('all are in', () => gone.every(({ texts }) => texts.length > 0));
  t.ok((await comeBack(t, port, { 'x-api-key': 'key-b' })) > 0, 'those of the address');
  t.strictSame(await Promise.all(gone.map(({ closed }) => closed)), [1006, 1006, 1006]);
  for (const _ of range(1, 2)) {
    gone.push(await openRaw(port, { path: '/ws?token=key-a' }));
    await until('it is in', () => (gone.at(-1)?.texts.length ?? 0) > 0);
  }
  hub.closeWhere({
    matches: (caller) => caller.kind === 'agent' && caller.id === 'b',
    code: 4001,
    reason: '',
  });
  await until('room at the address', () => hub.stats().sockets === 3);
  t.ok((await comeBack(t, port, headers)) > 0, 'those of the key');
  t.match(await living.ask({ op: 'ping' }), { op: 'pong' }, 'a client that is there stays');
});
