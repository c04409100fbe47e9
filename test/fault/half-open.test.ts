import { type Test, test } from 'tap';
import { type SilentProxy, startSilentProxy } from '../help/cutting-proxy.js';
import { allow, type FaultWorld, survive } from '../help/fault.js';
import { startPrivateStores } from '../help/stores.js';
import { until } from '../help/until.js';

/**
 * Connections that fall silent without an end: bytes go nowhere and nobody is told. The service
 * finds out by itself, connects anew and goes on, and meanwhile says how it is.
 */

const within_ms = 10_000;

interface Health {
  readonly status: string;
  readonly db: boolean;
  readonly redis: boolean;
}

const setUp = async (t: Test) => {
  const stores = await startPrivateStores(t);
  const [postgres, redis] = await Promise.all([
    startSilentProxy(t, stores.database_url),
    startSilentProxy(t, stores.redis_url),
  ]);
  const env = { DATABASE_URL: postgres.url, REDIS_URL: redis.url };
  return { postgres, redis, service: { env, stores } };
};

const readHealth = async ({ service }: FaultWorld): Promise<Health> => {
  const answer = await fetch(`${service.url}/health`, { signal: AbortSignal.timeout(3_000) });
  return (await answer.json()) as Health;
};

/** Predictions that are sent from now on are stored, and the socket tells of them. */
const isBack = async (t: Test, { load, listener }: FaultWorld, from_ms: number) => {
  const before = load.acknowledged.length;
  await load.reach(before + 20, 60_000);
  const newest = load.acknowledged.at(-1)?.event_id;
  await until('events flow', () => listener.heard.some(({ id }) => id === newest), 60_000);
  const passed_ms = performance.now() - from_ms;
  t.ok(passed_ms < allow(within_ms), `writes and events after ${Math.round(passed_ms)} ms`);
};

/** Many are asked at once, because one may get a connection that was opened since. */
const saysSo = async (t: Test, world: FaultWorld, store: 'db' | 'redis'): Promise<void> => {
  await until(`health says that ${store} is silent`, async () => {
    const asked = await Promise.all(Array.from({ length: 8 }, () => readHealth(world)));
    return asked.some((health) => !health[store]);
  });
  t.pass(`health said that ${store} was away`);
};

/** A pass over all scores may have the connection that fell silent, and has half a minute. */
const few = { before: 100, after: 100, per_second: 100, right_ms: 45_000 } as const;

const silences: readonly (readonly ['postgres' | 'redis', 'db' | 'redis'])[] = [
  ['postgres', 'db'],
  ['redis', 'redis'],
];

for (const [name, said] of silences) {
  test(`connections to ${name} fall silent`, async (t) => {
    const { service, ...proxies } = await setUp(t);
    const proxy: SilentProxy = proxies[name];
    await survive(t, {
      ...few,
      service,
      strike: async (world) => {
        const from_ms = performance.now();
        proxy.silence();
        t.ok(proxy.silenced > 4, `${proxy.silenced} connections fell silent`);
        await saysSo(t, world, said);
        await isBack(t, world, from_ms);
        await until('health is good', async () => (await readHealth(world)).status === 'ok');
      },
    });
  });
}

test('Postgres cannot be reached for a while, and then can', async (t) => {
  const { service, postgres } = await setUp(t);
  await survive(t, {
    ...few,
    service,
    strike: async (world) => {
      postgres.silenceAll();
      await saysSo(t, world, 'db');
      const from_ms = performance.now();
      await until('some time has passed', () => performance.now() - from_ms > 8_000);
      t.equal((await readHealth(world)).db, false);
      postgres.heal();
      await isBack(t, world, performance.now());
    },
  });
});
