import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { type LogEntry, nudgeChannel } from './log-entry.js';
import { createProjection, type Projector } from './projection.js';
import { deleteOldRevocations } from './revocations-store.js';
import {
  dropLease,
  ensurePartitions,
  handOver,
  holdLease,
  type Lease,
  readHead,
  takeLease,
} from './store.js';
import { createStreamWriter } from './stream-writer.js';

/**
 * The relay gives committed events their offsets and carries them to Redis. One is active, by a
 * lease with a fence; others wait for it to run out.
 *
 *   waiting ──lease taken──▶ active ──lease lost or stopped──▶ waiting
 *
 * A turn while active: (1) one transaction: check the fence, move events from the outbox to the
 * log, let every projector write what belongs to the same commit (counters); (2) let every
 * projector update Redis; (3) append to the Redis stream. Steps 2 and 3 may fail or be repeated at
 * any time: both are guarded by offsets and catch up from Postgres.
 */

export interface RelayOptions {
  readonly projectors: readonly Projector[];
  /** Connection that only subscribes; nudges arrive on it. */
  readonly subscriber: Redis;
  readonly poll_ms?: number;
}

const lease_seconds = 2;
const most_a_turn = 2_000;
/**
 * Bounds of the time between two hand-overs. It follows the size of the last one, so that a few
 * events go on at once and many of them share the work of one transaction.
 */
const gather_bounds_ms = { least: 15, most: 60 };

class LeaseLost extends Error {}

/** Keeps the partitions of the next days ready, and forgets old revocations. */
export const createEventsMaintenance = ({ sql, log }: Deps): Service =>
  makeLoop({
    name: 'events maintenance',
    log,
    every_ms: 3_600_000,
    after_error_ms: 5_000,
    turn: async () => {
      await ensurePartitions(sql, 7);
      await deleteOldRevocations(sql);
      return 'rest';
    },
  });

export const createRelay = (deps: Deps, options: RelayOptions): Service => {
  const { sql, redis, log, config } = deps;
  const { projectors, subscriber, poll_ms = 200 } = options;
  const prefix = config.REDIS_PREFIX;
  const writer = createStreamWriter({ sql, redis, prefix });
  const projection = createProjection({ sql, redis, prefix, log, projectors });
  const holder = makeId();
  let lease: Lease | undefined;
  let head = 0;
  let last_hand_over = 0;
  let last_size = 0;
  /** A hand-over whose answer was lost may have moved it. */
  let is_head_sure = false;

  /** Statements that do not wait for each other go together; a lost lease undoes them all. */
  const handOverOnce = (held: Lease): Promise<readonly LogEntry[]> =>
    sql.begin(async (tx) => {
      const [is_held, entries] = await Promise.all([
        holdLease(tx, held, lease_seconds),
        handOver(tx, most_a_turn),
      ]);
      if (!is_held) throw new LeaseLost();
      if (entries.length > 0) {
        await Promise.all(projectors.map((projector) => projector.record?.(tx, entries)));
      }
      return entries;
    });

  const feedRedis = async (fresh: readonly LogEntry[]): Promise<void> => {
    if (redis.status !== 'ready') return;
    try {
      // In this order: whoever hears of an event finds it counted.
      await projection.update(head, fresh);
      await writer.write(head, fresh);
    } catch (error) {
      projection.forget();
      log.warn(describeError(error), 'relay: Redis is away, the log goes on in Postgres');
      await pause(100);
    }
  };

  const becomeActive = async (): Promise<boolean> => {
    const taken = await takeLease(sql, 'relay', holder, lease_seconds);
    if (taken === undefined) return false;
    await ensurePartitions(sql, 3);
    projection.forget();
    is_head_sure = false;
    lease = taken;
    log.info({ fence: taken.fence }, 'relay: active');
    return true;
  };

  const turn = async (): Promise<'again' | 'rest'> => {
    if (lease === undefined && !(await becomeActive())) return 'rest';
    const since = performance.now() - last_hand_over;
    const { least, most } = gather_bounds_ms;
    const gather_ms = Math.min(Math.max(last_size / 2, least), most);
    if (since < gather_ms) await pause(gather_ms - since);
    last_hand_over = performance.now();
    if (!is_head_sure) head = await readHead(sql);
    is_head_sure = false;
    const entries = await handOverOnce(lease as Lease).catch((error: unknown) => {
      if (error instanceof LeaseLost) return undefined;
      throw error;
    });
    is_head_sure = true;
    if (entries === undefined) {
      log.warn('relay: the lease went to another relay');
      lease = undefined;
      return 'rest';
    }
    last_size = entries.length;
    head = entries[entries.length - 1]?.offset ?? head;
    await feedRedis(entries);
    return entries.length === 0 ? 'rest' : 'again';
  };

  const loop: Loop = makeLoop({ name: 'relay', log, every_ms: poll_ms, turn });
  return {
    name: 'relay',
    async start() {
      const subscribe = () => subscriber.subscribe(nudgeChannel(prefix)).catch(() => undefined);
      subscriber.on('message', () => loop.nudge());
      subscriber.on('ready', subscribe);
      if (subscriber.status === 'ready') await subscribe();
      await loop.start();
    },
    async stop() {
      await loop.stop();
      if (lease !== undefined) await dropLease(sql, lease).catch(() => undefined);
    },
  };
};
