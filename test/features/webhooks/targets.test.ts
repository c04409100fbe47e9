import { once } from 'node:events';
import { type AddressInfo, createServer, Socket } from 'node:net';
import type { Test } from 'tap';
import type { TargetProblemCode } from '../../../src/kit/outbound/target.js';
import { startApp, type TestApp } from '../../help/app.js';
import { bad_targets } from '../../help/bad-targets.js';
import { startNameServer, type Zone } from '../../help/name-server.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { makeWorld, type World } from './world.js';

/**
 * Targets that must not be called, at each of the three places that check them. Every connection
 * that this process opens is counted, which proves that a refusal comes before any packet.
 */

/** A TCP connection that this process tried to open, with or without TLS. */
interface Connect {
  readonly host: string;
  readonly port: number;
}

/** Lists the connections of the current test. Connections to Unix sockets are left out. */
const watchConnects = (): readonly Connect[] => {
  const seen: Connect[] = [];
  t.beforeEach(() => {
    seen.length = 0;
  });
  const original = Socket.prototype.connect;
  const watched = function (this: Socket, ...given: unknown[]): Socket {
    // Node passes its own arguments in normalized form: an array of options and listener.
    const first = Array.isArray(given[0]) ? given[0][0] : given[0];
    const { host, port } = (first ?? {}) as Partial<Connect>;
    if (port !== undefined) seen.push({ host: host ?? 'localhost', port: Number(port) });
    return original.apply(this, given as Parameters<typeof original>);
  };
  Socket.prototype.connect = watched as typeof original;
  t.teardown(() => {
    Socket.prototype.connect = original;
  });
  return seen;
};

const codes: Readonly<Record<TargetProblemCode, string>> = {
  https_required: 'HTTPS_REQUIRED',
  invalid_url: 'INVALID_URL',
  target_refused: 'SSRF_BLOCKED',
};

const all_bad = Object.entries(bad_targets).flatMap(([code, urls]) =>
  urls.map((url) => ({ url, code: codes[code as TargetProblemCode] })),
);

/** Names that resolve, entirely or partly, to non-public addresses. */
const refused_zones: Readonly<Record<string, Zone>> = Object.fromEntries(
  [
    ...[
      '0.0.0.0',
      '10.0.0.1',
      '100.64.0.1',
      '127.0.0.1',
      '127.255.255.254',
      '169.254.169.254',
      '172.16.0.1',
      '172.31.255.255',
      '192.0.0.8',
      '192.0.2.1',
      '192.88.99.1',
      '192.168.0.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
      '255.255.255.255',
      '240.0.0.1',
      '168.63.129.16',
      '100.100.100.200',
    ].map((one): Zone => ({ a: [one] })),
    ...[
      '0:0:0:0:0:0:0:0',
      '0:0:0:0:0:0:0:1',
      '0:0:0:0:0:ffff:7f00:1',
      '0:0:0:0:0:ffff:808:808',
      '0:0:0:0:0:0:7f00:1',
      '0:0:0:0:ffff:0:7f00:1',
      '64:ff9b:0:0:0:0:7f00:1',
      '64:ff9b:1:0:0:0:0:1',
      '100:0:0:0:0:0:0:1',
      '2001:0:0:0:0:0:0:1',
      '2001:db8:0:0:0:0:0:1',
      '2002:7f00:1:0:0:0:0:1',
      '3fff:0:0:0:0:0:0:1',
      '5f00:0:0:0:0:0:0:1',
      'fc00:0:0:0:0:0:0:1',
      'fd00:ec2:0:0:0:0:0:254',
      'fe80:0:0:0:0:0:0:1',
      'fec0:0:0:0:0:0:0:1',
      'ff02:0:0:0:0:0:0:1',
    ].map((one): Zone => ({ aaaa: [one] })),
    { a: ['1.1.1.1', '127.0.0.1'] },
    { a: ['1.1.1.1'], aaaa: ['0:0:0:0:0:0:0:1'] },
    { a: ['10.0.0.1'], aaaa: ['2606:4700:4700:0:0:0:0:1111'] },
    { cname: 'localhost', a: ['127.0.0.1'] },
    { cname: 'localhost', aaaa: ['0:0:0:0:0:0:0:1'] },
    { a: Array.from({ length: 17 }, (_, n) => `1.1.1.${n}`) },
    { a: Array.from({ length: 10_000 }, (_, n) => `1.1.${n >> 8}.${n & 255}`) },
  ].map((zone, n) => [`n${n}.acme.com`, zone]),
);

const portsOf = (urls: readonly string[]): number[] => urls.map((url) => Number(new URL(url).port));

/** Connections to ports that do not belong to the test itself. */
const strange = (connects: readonly Connect[], known: readonly number[]): readonly Connect[] =>
  connects.filter(({ port }) => !known.includes(port));

const good_name = 'good.acme.com';
const own_name = 'own.acme.com';
const connects = watchConnects();
const names = await startNameServer(t, {
  ...refused_zones,
  [good_name]: { a: ['1.1.1.1'] },
  [own_name]: { a: ['127.0.0.1'] },
});

/** The service with its routes, which create and change webhooks. */
const startRoutes = async (env: Readonly<Record<string, string>> = {}) => {
  const app = await startApp(t, {
    roles: ['api'],
    env: { WEBHOOK_DNS_SERVERS: names.server, LIMIT_WEBHOOKS: '1000000', ...env },
  });
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const create = (url: string) =>
    app.call('POST', '/api/webhooks', { key, body: { url, events: ['question.created'] } });
  return { app, key, create };
};
const { app, key, create } = await startRoutes();
const good = await create(`https://${good_name}/`);
const update = (url: string) =>
  app.call('PATCH', `/api/webhooks/${good.body.id}`, { key, body: { url } });
/** Tries to create a webhook with this URL, and to change an existing one to it. */
const tryBoth = async (url: string) => [await create(url), await update(url)];
const strangers = () =>
  strange(connects, [app.port, ...portsOf([app.stores.database_url, app.stores.redis_url])]);
/** Like `strangers`, but for a service without routes. */
const strangersOf = ({ deps }: World) =>
  strange(connects, portsOf([deps.config.DATABASE_URL ?? '', deps.config.REDIS_URL ?? '']));

const storedUrls = async ({ sql }: TestApp): Promise<string[]> =>
  (await sql<{ url: string }[]>`select url from webhooks`).map(({ url }) => url);

t.test('no bad address is taken at create or update, looked up or called', async (t) => {
  t.ok(all_bad.length >= 100);
  const wrong: string[] = [];
  for (const { url, code } of all_bad) {
    for (const { status, body } of await tryBoth(url)) {
      const is_right = status === 400 && body.code === code && body.fields[0].path === 'body.url';
      if (!is_right) wrong.push(`${url.slice(0, 80)}: ${JSON.stringify(body)}`);
    }
  }
  t.same(wrong, []);
  t.same(await storedUrls(app), [`https://${good_name}/`]);
  t.same([...new Set(names.asked)], [good_name]);
  t.same(strangers(), []);
});

t.test('no name is taken at create or update with an answer that is not public', async (t) => {
  const wrong: string[] = [];
  for (const [name, zone] of Object.entries(refused_zones)) {
    for (const { body } of await tryBoth(`https://${name}/`)) {
      if (body.code !== 'SSRF_BLOCKED') wrong.push(JSON.stringify([zone, body]).slice(0, 200));
    }
  }
  t.same(wrong, []);
  t.same(await storedUrls(app), [`https://${good_name}/`]);
  t.same(strangers(), []);
});

t.test('a name without an answer is taken with a warning', async (t) => {
  names.set('late.acme.com', { a: ['127.0.0.1'], delay_ms: 30_000 });
  names.set('broken.acme.com', { rcode: 2 });
  names.set('alias.acme.com', { cname: 'localhost' });
  for (const name of ['absent', 'broken', 'alias']) {
    const made = await create(`https://${name}.acme.com/`);
    t.match(made, { status: 201, body: { warning: /looked up before every attempt/ } }, name);
  }
  const moved = await update('https://late.acme.com/');
  t.match(moved, { status: 200, body: { warning: /took too long/ } });
  t.same(strangers(), []);
});

t.test('no bad address that is stored all the same is called', async (t) => {
  const world = await makeWorld(t, {
    env: { WEBHOOK_DNS_SERVERS: names.server, WEBHOOK_ALLOW_CIDRS: '' },
  });
  const before = names.asked.length;
  const storable = all_bad
    .map(({ url }) => url)
    .filter((url) => Buffer.byteLength(url) <= 2_048 && !url.includes('\0'));
  const named = Object.keys(refused_zones).map((name) => `https://${name}/`);
  for (const url of [...storable, ...named]) await world.addHook({ url });
  const [event_id] = await world.record({});
  await world.startSigner();
  const { length } = await world.settled(storable.length + named.length, 'blocked');
  const errors = pluck(await world.attempts(event_id), 'error');
  t.equal(errors.length, length);
  t.same([...new Set(errors)].sort(), [
    'address_refused',
    'https_required',
    'invalid_url',
    'target_refused',
  ]);
  const asked = new Set(names.asked.slice(before));
  t.same([...asked].sort(), Object.keys(refused_zones).sort());
  t.same(strangersOf(world), []);
});

/** Counts connections to an address that must not be reached. */
const startTrap = async (t: Test, host: string, port: number): Promise<() => number> => {
  let count = 0;
  const server = createServer((socket) => {
    count += 1;
    socket.destroy();
  });
  server.listen(port, host);
  await once(server, 'listening');
  t.teardown(() => server.close());
  t.equal((server.address() as AddressInfo).port, port);
  return () => count;
};

t.test('a name that moves after it was taken is called only where it may be', async (t) => {
  const name = 'moving.acme.com';
  const world = await makeWorld(t, {
    names: [name],
    env: { WEBHOOK_DNS_SERVERS: names.server, WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' },
  });
  const { receiver } = world;
  const trapped = await startTrap(t, '127.0.0.2', receiver.port);
  await world.addHook({ url: `https://${name}:${receiver.port}/` });
  await world.startSigner();
  const states: Record<string, string> = {};
  const deliver = async (zone: Zone, state: string): Promise<void> => {
    names.set(name, zone);
    const [event_id] = await world.record({});
    states[event_id as string] = state;
    await until(`a delivery is ${state}`, async () => {
      const all = await world.deliveries();
      return all.every((one) => one.state === states[one.event_id]);
    });
  };
  await deliver({ a: ['127.0.0.1'] }, 'delivered');
  await deliver({ a: ['127.0.0.2'] }, 'blocked');
  await deliver({ a: ['127.0.0.1', '127.0.0.2'] }, 'blocked');
  await deliver({ cname: 'localhost', a: ['127.0.0.2'] }, 'blocked');
  await deliver({ a: ['127.0.0.1'], aaaa: ['0:0:0:0:0:0:0:1'] }, 'blocked');
  await deliver({ a: ['127.0.0.1'] }, 'delivered');
  await deliver({ rcode: 3 }, 'waiting');
  t.equal(trapped(), 0);
  const called = connects.filter(({ port }) => port === receiver.port);
  t.same([...new Set(called.map(({ host }) => host))], ['127.0.0.1']);
  t.equal(receiver.received.length, 2);
  t.equal(receiver.received[0]?.headers.host, `${name}:${receiver.port}`);
});

t.test('of this machine only ports from 10000 upwards are taken and called', async (t) => {
  const low = ['', ':5432', ':6379', ':8080', ':8443'].flatMap((port) => [
    `https://127.0.0.1${port}/`,
    `https://[::1]${port}/`,
    `https://${own_name}${port}/`,
  ]);
  const allowed = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128' };
  const lab = await startRoutes(allowed);
  for (const url of low) {
    t.match(await lab.create(url), { status: 400, body: { code: 'SSRF_BLOCKED' } }, url);
  }
  const high = ['https://127.0.0.1:10000/', `https://${own_name}:10000/`];
  for (const url of high) t.equal((await lab.create(url)).status, 201, url);
  t.same((await storedUrls(lab.app)).sort(), high.sort());
  await lab.app.stop();

  const world = await makeWorld(t, { env: { WEBHOOK_DNS_SERVERS: names.server, ...allowed } });
  for (const url of low) await world.addHook({ url });
  await world.record({});
  await world.startSigner();
  await world.settled(low.length, 'blocked');
  t.same(
    strangersOf(world).filter(({ port }) => port !== lab.app.port),
    [],
  );
});
