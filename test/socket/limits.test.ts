import { t } from 'tap';
import { range, startHub } from '../help/hub.js';
import { type Client, connect } from '../help/ws-client.js';

/** Each limit at its greatest allowed value, and one above. */

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
  const far_over = await connect(t, port);
  far_over.send(pad(98_305));
  t.equal(await far_over.closed(), 1006, 'the library cuts what is larger than any frame');
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
    socket.send({ op: 'ping', id: 1 });
    t.match(await socket.answer(1), { op: 'pong' }, `99 of ${send}, and a frame`);
    const over = await connect(t, port);
    for (const _ of range(1, 115)) over.ws[send]();
    t.equal(await over.closed(), 4102, send);
  }
});

const subscribe = async (socket: Client, id: number, from: number, to: number) => {
  const topics = range(from, to).map((n) => `t:${n}`);
  socket.send({ op: 'subscribe', id, topics });
  return socket.answer(id);
};

t.test('an anonymous socket may hold 20 topics', async (t) => {
  const { port, hub } = await startHub(t);
  const socket = await connect(t, port);
  t.match(await subscribe(socket, 1, 1, 21), { op: 'error', code: 'TOO_MANY_TOPICS' });
  t.equal(hub.stats().topics, 0, 'all of a frame or nothing');
  t.match(await subscribe(socket, 2, 1, 20), { op: 'subscribed' });
  t.match(await subscribe(socket, 3, 20, 20), { op: 'subscribed' }, 'one it holds already');
  t.match(await subscribe(socket, 4, 21, 21), { op: 'error', code: 'TOO_MANY_TOPICS' });
  socket.send({ op: 'unsubscribe', id: 5, topics: ['t:1'] });
  await socket.answer(5);
  t.match(await subscribe(socket, 6, 21, 21), { op: 'subscribed' });
});

t.test('a socket with a key may hold 1,000 topics', async (t) => {
  const { port } = await startHub(t);
  const socket = await connect(t, port, { headers: { 'x-api-key': 'key-a' } });
  t.match(await subscribe(socket, 1, 1, 1_001), { op: 'error', code: 'INVALID_FRAME' });
  t.match(await subscribe(socket, 2, 1, 1_000), { op: 'subscribed' });
  t.match(await subscribe(socket, 3, 1_001, 1_001), { op: 'error', code: 'TOO_MANY_TOPICS' });
});

t.test('the sockets of one key share its topics', async (t) => {
  const { port } = await startHub(t);
  const headers = { 'x-api-key': 'key-a' };
  const [one, two] = [await connect(t, port, { headers }), await connect(t, port, { headers })];
  const other = await connect(t, port, { headers: { 'x-api-key': 'key-b' } });
  t.match(await subscribe(one, 1, 1, 600), { op: 'subscribed' });
  t.match(await subscribe(two, 1, 1, 401), { op: 'error', code: 'TOO_MANY_TOPICS' });
  t.match(await subscribe(two, 2, 1, 400), { op: 'subscribed' });
  t.match(await subscribe(one, 2, 601, 601), { op: 'error', code: 'TOO_MANY_TOPICS' });
  t.match(await subscribe(other, 1, 1, 1_000), { op: 'subscribed' }, 'another key has its own');
  two.ws.close();
  await two.closed();
  t.match(await subscribe(one, 3, 601, 1_000), { op: 'subscribed' });
});

t.test('topics on their way count as well', async (t) => {
  const server = await startHub(t, {}, 10);
  let release = (): void => undefined;
  server.reads.gate = new Promise((resolve) => {
    release = resolve;
  });
  server.hub.begin(10);
  const socket = await connect(t, server.port);
  const topics = range(1, 20).map((n) => `t:${n}`);
  socket.send({ op: 'subscribe', id: 1, topics, after: 0 });
  t.match(await subscribe(socket, 2, 21, 21), { op: 'error', code: 'TOO_MANY_TOPICS' });
  release();
  t.match(await socket.answer(1), { op: 'subscribed', result: 'recovered' });
});

t.test('one key may have 20 sockets, however it was shown', async (t) => {
  const { port, hub } = await startHub(t);
  const headers = { 'x-api-key': 'key-a' };
  const sockets = await Promise.all(range(1, 20).map(() => connect(t, port, { headers })));
  const refused = await connect(t, port, { headers });
  t.equal(await refused.closed(), 4005);
  t.match(refused.frames, [{ op: 'error', code: 'TOO_MANY_CONNECTIONS' }]);
  const by_frame = await connect(t, port);
  by_frame.send({ op: 'auth', id: 1, api_key: 'key-a' });
  t.equal(await by_frame.closed(), 4005);
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
  t.equal(await refused.closed(), 4005);
  t.equal(hub.stats().sockets, 200);
  sockets[0]?.ws.close();
  await sockets[0]?.closed();
  const again = await connect(t, port);
  t.equal((await again.get('welcome', () => true)).op, 'welcome');
});
