import type { Test } from 'tap';
import { startFaultyProxy } from '../help/faulty-proxy.js';
import { poolerOf } from '../help/pgbouncer.js';
import { startPrivateStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';
import {
  type Fault,
  type FaultWorld,
  fault_limits,
  is_long,
  startWorld,
  surviveAll,
} from './world.js';

/**
 * Connections that go silent without ending: bytes are lost and neither side notices. The service
 * detects this on its own, reconnects and continues, and reports its state in the meantime.
 */

t.setTimeout(fault_limits.timeout);

interface Health {
  readonly status: string;
  readonly db: boolean;
  readonly db_writes: boolean;
  readonly redis: boolean;
}

const readHealth = async ({ service }: FaultWorld): Promise<Health> => {
  const response = await fetch(`${service.url}/health`, { signal: AbortSignal.timeout(3_000) });
  return (await response.json()) as Health;
};

/** Checks that new predictions are stored and announced on the socket. */
const isBack = async (t: Test, { load, listeners }: FaultWorld, from_ms: number) => {
  await load.more(20, 60_000);
  const newest = load.acknowledged.at(-1)?.event_id;
  const isHeard = () => listeners[0]?.heard.some(({ id }) => id === newest);
  await until('events flow', isHeard, 60_000);
  const passed_ms = performance.now() - from_ms;
  t.ok(passed_ms < allow(10_000), `writes and events after ${Math.round(passed_ms)} ms`);
};

type Store = 'db' | 'db_writes' | 'redis';

/** Sends many requests at once: there may be several processes, some of them healthy. */
const untilFollowed = async (world: FaultWorld, store: Store): Promise<void> => {
  await until(`health says that ${store} is silent`, async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => readHealth(world)));
    return all.some((health) => !health[store]);
  });
};

t.test('connections fall silent under load', fault_limits, async (t) => {
  const stores = await startPrivateStores(t);
  const postgres = await startFaultyProxy(t, await poolerOf(t, stores.database_url));
  // The nodes of a cluster announce their own addresses, so a proxy is not possible.
  const is_cluster = stores.redis_url.endsWith('?cluster');
  const redis = is_cluster ? null : await startFaultyProxy(t, stores.redis_url);
  const env = { DATABASE_URL: postgres.url, REDIS_URL: redis?.url ?? stores.redis_url };
  const world = await startWorld(t, { env, stores });
  const fallSilent = async (t: Test, proxy: typeof postgres, store: Store) => {
    const from_ms = performance.now();
    proxy.silence();
    t.ok(proxy.silenced > 4, `${proxy.silenced} connections fell silent`);
    await untilFollowed(world, store);
    await isBack(t, world, from_ms);
    await until('health is good', async () => (await readHealth(world)).status === 'ok');
  };
  const loseFor = async (t: Test, min_ms: number) => {
    postgres.silenceAll();
    await untilFollowed(world, 'db');
    const from_ms = performance.now();
    await until('some time has passed', () => performance.now() - from_ms > min_ms);
    t.equal((await readHealth(world)).db, false);
    postgres.heal();
    await isBack(t, world, performance.now());
  };
  const faults: Readonly<Record<string, Fault>> = {
    'those to Postgres': { strike: (_, t) => fallSilent(t, postgres, 'db_writes') },
    'Postgres cannot be reached for a while, and then can': {
      strike: (_, t) => loseFor(t, is_long ? 8_000 : 3_000),
    },
    ...(redis && { 'those to Redis': { strike: (_, t) => fallSilent(t, redis, 'redis') } }),
  };
  // A pass over all scores may hang on a silent connection until its limit of half a minute.
  await surviveAll(t, world, faults, 45_000);
});
