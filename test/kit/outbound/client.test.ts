import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import type { Test } from 'tap';
import {
  type ClientOptions,
  createGuardedClient,
  type GuardedClient,
  type Outcome,
} from '../../../src/kit/outbound/client.js';
import type { Target } from '../../../src/kit/outbound/target.js';
import { pluck } from '../../help/pluck.js';
import { type Receiver, startReceiver } from '../../help/receiver.js';
import { t } from '../../help/tap.js';

const body = Buffer.from('{"hello":"wörld"}');
const name = 'hooks.forecast-receiver.com';

const setUp = async (t: Test, options: Partial<ClientOptions> = {}) => {
  const receiver = await startReceiver([name]);
  const client = createGuardedClient({
    allow_cidrs: ['127.0.0.0/8'],
    ca_pem: receiver.ca_pem,
    ...options,
  });
  t.teardown(async () => {
    client.close();
    await receiver.close();
  });
  return { receiver, client };
};

const post = async (client: GuardedClient, url: string): Promise<Outcome> => {
  const target = client.parse(url);
  if (target.kind === 'problem') throw new Error(target.sentence);
  return client.post({ target, headers: { 'Content-Type': 'application/json' }, body });
};

const named = (receiver: Receiver, path: string): string =>
  `https://${name}:${receiver.port}${path}`;

t.test('a call posts the exact bytes and returns status and answer', async (t) => {
  const { receiver, client } = await setUp(t);
  receiver.script('/a?b=c', { status: 201, body: 'thank you\0' });
  const outcome = await post(client, receiver.url('/a?b=c'));
  t.match(outcome, { status: 201, error: null, answer: 'thank you\uFFFD', retry_after: '' });
  t.equal(receiver.received.length, 1);
  const [got] = receiver.received;
  t.same(got?.body, body);
  t.equal(got?.headers['content-length'], String(body.length));
  t.equal(got?.headers.host, `127.0.0.1:${receiver.port}`);
});

t.test('a kept connection that the receiver closed is replaced by a fresh one', async (t) => {
  const { receiver, client } = await setUp(t);
  receiver.script('/', { status: 200 }, (response) => response.socket?.destroy(), { status: 202 });
  t.equal((await post(client, receiver.url('/'))).status, 200);
  t.equal((await post(client, receiver.url('/'))).status, 202);
  t.equal(receiver.received.length, 3);
});

t.test('a redirect is not followed, and Retry-After is handed on as sent', async (t) => {
  const { receiver, client } = await setUp(t);
  receiver.script(
    '/',
    { status: 301, headers: { Location: receiver.url('/elsewhere') } },
    { status: 429, headers: { 'Retry-After': '17' } },
  );
  t.match(await post(client, receiver.url('/')), { status: 301, error: null });
  t.match(await post(client, receiver.url('/')), { status: 429, retry_after: '17' });
  t.equal(receiver.of('/elsewhere').length, 0);
});

t.test(
  '4 KB of an answer are read; one byte more ends the connection, and the status counts',
  async (t) => {
    const { receiver, client } = await setUp(t);
    for (const bytes of [4_096, 4_097]) {
      receiver.script('/', { status: 200, body: 'x'.repeat(bytes) });
      const outcome = await post(client, receiver.url('/'));
      t.match(outcome, { status: 200, error: null, answer: 'x'.repeat(1_024) });
    }
    await post(client, receiver.url('/'));
    t.same(
      pluck(receiver.received, 'connection'),
      [1, 1, 2],
      'a connection is kept between calls, but for the long answer',
    );
  },
);

t.test('one wall clock ends an answer that never begins, and one that trickles', async (t) => {
  const { receiver, client } = await setUp(t, { limits: { wall_ms: 200 } });
  const closed = new Promise<void>((resolve) => {
    receiver.script('/', (response) => void response.once('close', resolve));
  });
  const outcome = await post(client, receiver.url('/'));
  t.match(outcome, { status: null, error: 'timeout' });
  t.ok(outcome.latency_ms >= 190 && outcome.latency_ms < 8_000, String(outcome.latency_ms));
  await closed;
  receiver.script('/', (response) => {
    response.writeHead(200);
    const trickle = setInterval(() => response.write('.'), 20);
    response.once('close', () => clearInterval(trickle));
  });
  t.match(await post(client, receiver.url('/')), { status: 200, error: 'timeout' });
});

t.test('a name that is not looked up in time is not called', async (t) => {
  const { receiver, client } = await setUp(t, {
    limits: { lookup_ms: 60 },
    resolve: () => new Promise(() => undefined),
  });
  t.match(await post(client, named(receiver, '/')), { status: null, error: 'lookup_timeout' });
  t.equal(receiver.received.length, 0);
});

const startSilent = async (t: Test, greet?: (socket: Socket) => void) => {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    greet?.(socket);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
};

t.test('a handshake that never ends is ended by the wall clock', async (t) => {
  const { client } = await setUp(t, { limits: { wall_ms: 150 } });
  const outcome = await post(client, await startSilent(t));
  t.match(outcome, { status: null, error: 'timeout' });
  t.ok(outcome.latency_ms < 8_000, String(outcome.latency_ms));
});

/** Listens without accepting. Two connections already fill its backlog. */
const startFull = async (t: Test): Promise<string> => {
  const listening = `require('node:net').createServer().listen(
    { port: 0, host: '127.0.0.1', backlog: 1 },
    function () {
      require('node:fs').writeSync(1, String(this.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    },
  )`;
  const child = spawn(process.execPath, ['-e', listening], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = Number(String((await once(child.stdout, 'data'))[0]));
  const waiting = [0, 1].map(() => connect({ host: '127.0.0.1', port }));
  t.teardown(() => {
    for (const socket of waiting) socket.destroy();
    child.kill('SIGKILL');
  });
  for (const socket of waiting) socket.on('error', () => undefined);
  await Promise.all(waiting.map((socket) => once(socket, 'connect')));
  return `https://127.0.0.1:${port}/`;
};

t.test('a connection that nobody takes ends after the time to connect', async (t) => {
  const url = await startFull(t);
  const { client } = await setUp(t, { limits: { connect_ms: 150 } });
  const outcome = await post(client, url);
  t.match(outcome, { status: null, error: 'connect_timeout' });
  t.ok(outcome.latency_ms >= 140 && outcome.latency_ms < 8_000, String(outcome.latency_ms));
});

/** Forwards the first flight of a receiver, followed by bytes that are not TLS. */
const startSpoiler = async (t: Test, receiver: Receiver): Promise<string> =>
  startSilent(t, (socket) => {
    const upstream = connect({ host: '127.0.0.1', port: receiver.port });
    upstream.on('error', () => undefined);
    upstream.once('data', (flight) => {
      socket.write(Buffer.concat([flight, Buffer.alloc(64, 0xff)]));
      upstream.destroy();
    });
    socket.on('data', (chunk) => upstream.write(chunk));
  });

t.test(
  'a peer that breaks the connection with the end of the handshake breaks nothing else',
  async (t) => {
    const { receiver, client } = await setUp(t);
    const url = await startSpoiler(t, receiver);
    for (let n = 0; n < 20; n += 1) {
      const { status, error } = await post(client, url);
      t.equal(status, null);
      t.match(error, /^(tls_failed|connection_lost)$/);
    }
    t.equal(receiver.received.length, 0);
  },
);

t.test('a certificate of an unknown authority, or for another name, is refused', async (t) => {
  const { receiver, client } = await setUp(t, { resolve: async () => ['127.0.0.1'] });
  const stranger = createGuardedClient({ allow_cidrs: ['127.0.0.0/8'] });
  t.teardown(() => stranger.close());
  t.match(await post(stranger, receiver.url('/')), { status: null, error: 'tls_failed' });
  const outcome = await post(client, `https://other.forecast-receiver.com:${receiver.port}/`);
  t.match(outcome, { status: null, error: 'tls_failed' });
  t.equal(receiver.received.length, 0);
});

t.test(
  'a broken connection, an answer that is not HTTP and nobody there are told apart',
  async (t) => {
    const { receiver, client } = await setUp(t);
    receiver.script('/', (response) => response.socket?.destroy());
    t.match(await post(client, receiver.url('/')), { status: null, error: 'connection_lost' });
    t.equal(receiver.received.length, 1, 'a first use is not tried again');
    receiver.script('/', (response) => response.socket?.end('SSH-2.0-OpenSSH\r\n'));
    t.match(await post(client, receiver.url('/')), { status: null, error: 'answer_invalid' });
    await receiver.close();
    t.match(await post(client, receiver.url('/')), { status: null, error: 'connect_failed' });
  },
);

t.test('a name is sent as Host and server name to the address that was vetted', async (t) => {
  const asked: string[] = [];
  const { receiver, client } = await setUp(t, {
    resolve: async (one) => {
      asked.push(one);
      return ['127.0.0.1'];
    },
  });
  t.match(await post(client, named(receiver, '/named')), { status: 204, error: null });
  t.equal(receiver.received[0]?.headers.host, `${name}:${receiver.port}`);
  t.same(asked, [name]);
});

t.test('a second address is tried when the first does not take the connection', async (t) => {
  const { receiver, client } = await setUp(t, {
    // Nothing can listen on the first address of the loopback network.
    resolve: async () => ['127.0.0.1', '127.0.0.0'],
  });
  t.match(await post(client, named(receiver, '/')), { status: 204, error: null });
});

t.test('a name that is rebound to a private address is not called again', async (t) => {
  const answers = [['127.0.0.1'], ['10.0.0.7'], ['127.0.0.1', '192.168.0.9'], ['127.0.0.1']];
  const { receiver, client } = await setUp(t, { resolve: async () => answers.shift() ?? [] });
  t.match(await post(client, named(receiver, '/')), { status: 204 });
  t.match(await post(client, named(receiver, '/')), { status: null, error: 'address_refused' });
  t.match(await post(client, named(receiver, '/')), { status: null, error: 'address_refused' });
  t.equal(receiver.received.length, 1, 'a kept connection to the old address is no way round');
  t.match(await post(client, named(receiver, '/')), { status: 204 });
  t.match(await post(client, named(receiver, '/')), { status: null, error: 'name_not_found' });
});

t.test('a proxy of the environment is not used', async (t) => {
  const { receiver, client } = await setUp(t);
  for (const variable of ['HTTPS_PROXY', 'https_proxy']) {
    process.env[variable] = 'http://127.0.0.1:1';
    t.teardown(() => delete process.env[variable]);
  }
  t.match(await post(client, receiver.url('/')), { status: 204 });
});

t.test('a look over http sends no body and tells where a page has moved', async (t) => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.headers.host} ${request.headers.range ?? ''}`.trim());
    const status = request.url === '/moved' ? 302 : 200;
    response.writeHead(status, { location: 'https://elsewhere.acme.com/' }).end('a page');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const open = (allow_cidrs: readonly string[], allow_plain = true) => {
    const resolve = async () => ['127.0.0.1'];
    const client = createGuardedClient({ allow_cidrs, allow_plain, resolve });
    t.teardown(() => client.close());
    return client;
  };
  const client = open(['127.0.0.0/8']);
  const page = client.parse(`http://pages.acme.com:${port}/moved`) as Target;
  const headers = { Range: 'bytes=0-0' };
  t.match(await client.look({ target: page, method: 'HEAD', headers: {} }), {
    status: 302,
    error: null,
    answer: '',
    location: 'https://elsewhere.acme.com/',
  });
  t.match(await client.look({ target: page, method: 'GET', headers }), { answer: 'a page' });
  t.same(seen.splice(0), [`HEAD pages.acme.com:${port}`, `GET pages.acme.com:${port} bytes=0-0`]);

  const guarded = open([]);
  t.match(await guarded.look({ target: page, method: 'HEAD', headers: {} }), {
    status: null,
    error: 'address_refused',
  });
  t.same(seen, [], 'http has the same guard: nothing was sent');
  t.match(guarded.parse('http://127.0.0.1/'), { kind: 'problem', code: 'target_refused' });
  t.match(guarded.parse('http://pages.acme.com:22/'), { code: 'target_refused' });
  t.match(guarded.parse('http://pages.acme.com/'), { port: 80, is_plain: true });
  t.match(guarded.parse('https://pages.acme.com/'), { port: 443, is_plain: false });
  t.match(guarded.parse('ftp://pages.acme.com/'), { code: 'invalid_url' });
  const strict = open([], false);
  t.match(strict.parse('http://pages.acme.com/'), { code: 'https_required' });
});
