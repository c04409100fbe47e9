import calculateSlot from 'cluster-key-slot';
import { pino } from 'pino';
import type { Test } from 'tap';
import { tallyKey } from '../../src/features/consensus/tally.js';
import { streamKey } from '../../src/features/events/log-entry.js';
import { createLimiter } from '../../src/http/limits.js';
import { type RedisNode, startRedisCluster, startSentinels } from '../help/redis-cluster.js';
import { openStores, openTestRedis } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Fault, fault_limits, is_long, startWorld, surviveAll } from './world.js';

/**
 * Redis on several machines, under load. Slots move between masters, and dead masters are replaced
 * by their replicas, either by the cluster or by Sentinels. A write that no replica has yet is lost
 * with its master, but nothing that a client can see is lost.
 */

t.setTimeout(fault_limits.timeout);
// Most of the time is spent waiting for a failover.
t.jobs = 2;
const options = { ...fault_limits, buffered: true };

const recovery_ms = 5_000;

/** Starts a service on the Postgres that all tests share. */
const startOn = async (t: Test, REDIS_URL: string) => {
  const { database_url } = await openStores(t);
  return startWorld(t, {
    agents: 300,
    questions: 40,
    followers: is_long ? 100 : 20,
    env: { DATABASE_URL: database_url, REDIS_URL, API_PROCESSES: '2' },
    stores: { database_url },
  });
};

/** The windows of an address and a key are on different masters, and both count exactly. */
const countOnTwoMasters = async (t: Test, url: string): Promise<void> => {
  const redis = await openTestRedis(t, url);
  const log = pino({ level: 'silent' });
  const limiter = createLimiter({ redis, prefix: 'two', processes: 1, log });
  for (let n = 0; n < 20; n += 1) {
    const windows = [
      { name: 'ip', key: `ip:address ${n}`, limit: 3, window_ms: 60_000 },
      { name: 'key', key: `key:agent ${n}`, limit: 1, window_ms: 60_000 },
    ];
    t.match(await limiter.take(windows), { allowed: true, is_local: false, left: [2, 0] });
    t.match(await limiter.take(windows), { allowed: false, refused: 1, is_local: false });
    t.match(await limiter.look(windows), [{ left: 2 }, { left: 0 }], 'a refusal takes nothing');
  }
  limiter.stop();
};

/** Kills a node under load, waits until another one has replaced it, and continues for a while. */
const killUnderLoad = async (
  node: RedisNode,
  replaced: () => Promise<unknown>,
  load: { readonly more: (count: number) => Promise<void> },
): Promise<void> => {
  await node.kill();
  await load.more(50);
  await replaced();
  await load.more(50);
};

t.test('a cluster under load', options, async (t) => {
  const cluster = await startRedisCluster();
  t.teardown(() => cluster.stop());
  await countOnTwoMasters(t, cluster.url);
  const world = await startOn(t, cluster.url);
  const { prefix, questions } = world.service;
  const log_slot = calculateSlot(streamKey(prefix));
  const tally_slot = calculateSlot(tallyKey(prefix, questions[0]?.id ?? ''));
  const killMasterOf = (slot: number): Fault => ({
    recovery_ms,
    strike: async ({ load }) => {
      const master = await cluster.findMaster(slot);
      await killUnderLoad(master, () => cluster.untilReplaced(master), load);
      await master.restart();
      await cluster.untilWhole();
    },
  });
  const faults: Readonly<Record<string, Fault>> = {
    'slots with keys go from one master to another': {
      recovery_ms,
      strike: async ({ load }, t) => {
        const moved = await cluster.moveSlotsOf(await cluster.findMaster(log_slot));
        t.ok(moved > 5, `${moved} slots moved`);
        await load.more(50);
      },
    },
    'kill -9 of the master that has the stream': killMasterOf(log_slot),
    ...(is_long ? { 'kill -9 of one that has a tally': killMasterOf(tally_slot) } : {}),
  };
  await surviveAll(t, world, faults);
});

t.test('a master that Sentinels watch, under load', options, async (t) => {
  const { url, master, replica, stop } = await startSentinels();
  t.teardown(stop);
  const world = await startOn(t, url);
  const kill = (from: RedisNode, to: RedisNode): Fault => ({
    recovery_ms,
    strike: async ({ load }) => {
      await killUnderLoad(from, () => until('it takes over', () => to.isMaster(), 20_000), load);
      // The old master comes back as a master. Sentinels make it a replica only after ten seconds.
      if (!is_long) return;
      await from.restart();
      await until('the other follows', async () => !(await from.isMaster()), 30_000);
    },
  });
  const faults: Readonly<Record<string, Fault>> = {
    'kill -9 of the master': kill(master, replica),
    ...(is_long ? { 'kill -9 of the one after it': kill(replica, master) } : {}),
  };
  await surviveAll(t, world, faults);
});
