import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { type Test, test } from 'tap';
import { createWebhooks } from '../../../src/features/webhooks/index.js';
import { standardSecret } from '../../../src/features/webhooks/signing.js';
import { client_limits } from '../../../src/kit/outbound/client.js';
import { makeSelfSigned } from '../../help/authority.js';
import {
  drip,
  type Misbehaviour,
  pour,
  type RawServer,
  say,
  startHostile,
  startMute,
} from '../../help/hostile.js';
import { until } from '../../help/until.js';
import { answer, bomb, chunked, makeCases, plain } from './answers.js';
import { makeWorld, type World } from './world.js';

/** Receivers that answer well, badly, never or without end, each treated as it deserves. */

test('real deliveries pass the libraries of Standard Webhooks and of Svix', async (t) => {
  const world = await makeWorld(t);
  const hook = await world.addHook({ path: '/' });
  await world.record({}, { data: { text: 'Wird es regnen? ☂ "ja"\u2028' } }, { data: {} });
  await world.startSigner();
  await world.settled(3, 'delivered');
  const secret = standardSecret(hook.secret);
  for (const library of [new StandardWebhook(secret), new SvixWebhook(secret)]) {
    for (const { body, headers } of world.receiver.received) {
      const given = headers as Record<string, string>;
      t.doesNotThrow(() => library.verify(body.toString(), given));
      t.throws(() => library.verify(`${body} `, given));
      t.throws(() => library.verify(body.toString(), { ...given, 'webhook-id': 'evt_01' }));
    }
  }
});

test('the limits of a call are those of the design', (t) => {
  t.match(client_limits, {
    ...{ wall_ms: 10_000, connect_ms: 3_000, lookup_ms: 2_000 },
    ...{ answer_bytes: 4_096, kept_bytes: 1_024 },
  });
  t.end();
});

interface Treated {
  readonly state: string;
  readonly status: number | null;
  readonly error: string | null;
  /** Until the next attempt, in seconds from the end of this one. */
  readonly delay_s: number;
  readonly answer: string | null;
}

/** What came of the only delivery of each webhook, by its URL. */
const treatment = async ({ deps: { sql } }: World): Promise<Map<string, Treated>> => {
  const rows = await sql<(Treated & { url: string })[]>`
    select
      w.url, d.state, a.status, a.error, a.answer,
      (extract(epoch from d.next_at - a.at) - a.latency_ms / 1000.0)::float8 as delay_s
    from deliveries d
    join webhooks w on w.id = d.webhook_id
    join attempts a on a.webhook_id = d.webhook_id and a.event_id = d.event_id and a.attempt = 1
    where d.state not in ('pending', 'sending')`;
  return new Map(rows.map(({ url, ...rest }) => [url, rest]));
};

/** One webhook for each address, one event; what came of the first attempts. */
const deliverTo = async (
  t: Test,
  world: World,
  urls: readonly string[],
  limits: Partial<typeof client_limits> = {},
): Promise<(url: string) => Treated> => {
  for (const url of urls) await world.addHook({ url });
  await world.record({});
  const webhooks = createWebhooks(world.deps.config, { limits });
  t.teardown(() => webhooks.close());
  // Nothing is swept within this test, so that nothing is tried again.
  await world.startSigner({ webhooks, sweep_ms: 600_000 });
  const all = await until('every first attempt', async () => {
    const found = await treatment(world);
    return found.size === urls.length && found;
  });
  return (url) => all.get(url) as Treated;
};

test('each answer is a success, or a failure that is tried again at the right time', async (t) => {
  const world = await makeWorld(t);
  const cases = makeCases(world.deps.clock().getTime());
  const behaviours = Object.entries(cases).map(([path, { does }]) => [path, does] as const);
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const hostile = await startHostile(t, pair, Object.fromEntries(behaviours));
  const urls = Object.keys(cases).map(hostile.url);
  const of = await deliverTo(t, world, urls, { wall_ms: 60_000 });
  for (const [path, wanted] of Object.entries(cases)) {
    const { delay_s, ...got } = of(hostile.url(path));
    const { state, status, error = null } = wanted;
    t.match(got, { state, status, error }, path);
    if (wanted.answer !== undefined) t.match(got.answer, wanted.answer, path);
    const [least, most] = wanted.delay ?? [-1, 1];
    // Latencies are whole milliseconds.
    t.ok(delay_s > least - 0.01 && delay_s < most + 0.01, `${path}: ${delay_s} s`);
    t.equal(hostile.count(path), 1, path);
  }
  await until('every connection is closed', () => hostile.open === 0);
});

test('no redirect is followed', async (t) => {
  const world = await makeWorld(t);
  const inside = await startMute(t);
  const codes = [301, 302, 303, 307, 308];
  const moves = codes.flatMap((code) => [
    [`/${code}-inside`, code, `https://127.0.0.1:${inside.port}/`] as const,
    [`/${code}-plain`, code, `http://127.0.0.1:${inside.port}/`] as const,
    [`/${code}-loop`, code, `/${code}-loop`] as const,
  ]);
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const behaviours = moves.map(([path, code, to]) => [
    path,
    plain(`${code} Moved`, `Location: ${to}`),
  ]);
  const hostile = await startHostile(t, pair, Object.fromEntries(behaviours));
  const of = await deliverTo(
    t,
    world,
    moves.map(([path]) => hostile.url(path)),
  );
  for (const [path, status] of moves) {
    t.match(of(hostile.url(path)), { state: 'waiting', status, error: null });
    t.equal(hostile.count(path), 1, path);
  }
  t.equal(inside.open, 0);
});

test('certificates that are expired, self-signed or for another name are refused', async (t) => {
  const world = await makeWorld(t);
  const { issue } = world.receiver;
  const pairs = {
    expired: await issue({ names: ['127.0.0.1'], is_expired: true }),
    self_signed: await makeSelfSigned(['127.0.0.1']),
    wrong_name: await issue({ names: ['hooks.acme.com'] }),
    wrong_address: await issue({ names: ['127.0.0.2'] }),
  };
  const servers: RawServer[] = [];
  for (const pair of Object.values(pairs)) {
    servers.push(await startHostile(t, pair, { '/': say(answer('204 No Content')) }));
  }
  const no_tls = await startMute(t, (socket) => socket.end(answer('200 OK')));
  const resets = await startMute(t, (socket) => socket.resetAndDestroy());
  const urls = [...servers.map(({ url }) => url('/')), no_tls.href, resets.href];
  const of = await deliverTo(t, world, urls);
  for (const url of urls.slice(0, -1)) {
    t.match(of(url), { state: 'waiting', status: null, error: 'tls_failed' });
  }
  t.match(of(resets.href), { state: 'waiting', status: null, error: /^(tls|connect)_failed$/ });
  for (const server of servers) {
    t.equal(server.connections, 1);
    t.equal(server.count('/'), 0, 'no request was sent');
  }
});

test('the wall clock ends what has no end, and its slots go to the next', async (t) => {
  const world = await makeWorld(t);
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const slow: Readonly<Record<string, Misbehaviour>> = {
    '/never': () => undefined,
    '/byte-a-second': drip(answer('200 OK', 'Content-Length: 60'), 1_000),
    '/header-drip': drip('HTTP/1.1 200 OK\r\nX-Slow: ', 50),
    '/body-drip': drip(answer('200 OK'), 50),
  };
  const hostile = await startHostile(t, pair, slow);
  const stalled = await startMute(t);
  const urls = [...Object.keys(slow).map(hostile.url), stalled.href];
  for (const url of urls) await world.addHook({ url });
  // Six for two slots at each: the last ones come only when those before them are over.
  await world.record(...Array.from({ length: 6 }, () => ({})));
  const webhooks = createWebhooks(world.deps.config, { limits: { wall_ms: 400 } });
  t.teardown(() => webhooks.close());
  const signer = await world.startSigner({ webhooks });
  const count = 6 * urls.length;
  await until('every first attempt', async () => {
    const ended = await world.deps.sql<{ error: string | null }[]>`
      select error from attempts where attempt = 1`;
    return ended.length === count && ended.every(({ error }) => error === 'timeout');
  });
  const states = (await world.deliveries()).map(({ state }) => state);
  t.notOk(states.includes('delivered'));
  await signer.stop();
  await until('every connection is closed', () => hostile.open + stalled.open === 0);
});

const collectGarbage = async (): Promise<number> => {
  const { setFlagsFromString } = await import('node:v8');
  const { runInNewContext } = await import('node:vm');
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  for (let n = 0; n < 3; n += 1) {
    gc();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
};

test('memory stays flat whatever is sent back', async (t) => {
  const world = await makeWorld(t);
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const megabyte = Buffer.alloc(2 ** 20, 'x');
  const hostile = await startHostile(t, pair, {
    '/body': pour(answer('200 OK'), megabyte),
    '/header': pour('HTTP/1.1 200 OK\r\nX-Long: ', megabyte),
    '/chunks': pour(chunked, Buffer.from('1\r\nz\r\n'.repeat(100_000))),
    '/interim': pour('', Buffer.from(answer('100 Continue').repeat(40_000))),
    '/bomb': say(Buffer.concat([Buffer.from(answer('200 OK', 'Content-Encoding: gzip')), bomb])),
  });
  const paths = ['/body', '/header', '/chunks', '/interim', '/bomb'];
  const targets = paths.map((path) => {
    const target = world.webhooks.client.parse(hostile.url(path));
    if (target.kind === 'problem') throw new Error(target.sentence);
    return target;
  });
  const callAll = async (): Promise<void> => {
    const calls = targets.map((target) =>
      world.webhooks.client.post({ target, headers: {}, body: Buffer.from('{}') }),
    );
    for (const { answer: kept } of await Promise.all(calls)) t.ok(kept.length <= 1_024);
  };
  await callAll();
  await until('every connection is closed', () => hostile.open === 0);
  const before_mb = await collectGarbage();
  for (let n = 0; n < 30; n += 1) await callAll();
  await until('every connection is closed', () => hostile.open === 0);
  const after_mb = await collectGarbage();
  t.equal(hostile.connections, 31 * paths.length);
  t.ok(after_mb - before_mb < 16, `${before_mb} MB before, ${after_mb} MB after`);
});
