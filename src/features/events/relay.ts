import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Sql, Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import {
  deleteKeys,
  isCluster,
  joinChannel,
  loadScript,
  type RedisClient,
} from '../../redis/client.js';
import { readOldest } from './floor-store.js';
import { type LogEntry, packEntry, streamKey, wakeUpChannel } from './log-entry.js';
import { readProjected, writeProjected } from './projected.js';
import { deleteOldRevocations } from './revocations-store.js';
import * as store from './store.js';

/**
 * The relay gives committed events their offsets and carries them to Redis. Each host runs two
 * relays. Across all hosts, only one relay is active: it holds a lease with a fence. The others are
 * standbys that wait for the lease to expire.
 *
 *   waiting ──lease taken──▶ active ──lease lost or stopped──▶ waiting
 *
 * An active relay repeats three steps: (1) in one transaction, check the fence, move events from
 * the outbox to the log, and let every projector write data that belongs to the same commit
 * (counters); (2) let every projector update Redis; (3) append to the Redis stream. Steps 2 and 3
 * may fail or be repeated at any time: both are guarded by offsets and catch up from Postgres.
 */

export interface Projector {
  readonly name: string;
  /** Writes data that commits together with the offsets. */
  record?(tx: Tx, entries: readonly LogEntry[]): Promise<void>;
  /**
   * Updates Redis, some time later. Must be idempotent by the offsets of the entries. Rejects if
   * the state in Redis does not reach `after`, the offset just before the entries.
   */
  project?(entries: readonly LogEntry[], after?: number): Promise<void>;
  /** Rebuilds the state in Redis from the record after Redis lost it. */
  rebuild?(): Promise<void>;
}

interface RelayOptions {
  readonly projectors: readonly Projector[];
  /** A connection that only subscribes. Wake-ups arrive on it. */
  readonly subscriber: RedisClient;
  readonly poll_ms?: number;
}

const lease_seconds = 1;
const max_per_turn = 2_000;

class LeaseLost extends Error {}

/** Creates the partitions of the next days, and deletes old revocations. */
export const createEventsMaintenance = ({ sql, log }: Deps): Service =>
  makeLoop({
    name: 'events maintenance',
    log,
    every_ms: 3_600_000,
    after_error_ms: 5_000,
    turn: async () => {
      await store.ensurePartitions(sql, 7);
      await deleteOldRevocations(sql);
      return 'rest';
    },
  });

/** Independent statements are sent together. A lost lease rolls back all of them. */
const handOverOnce = (
  sql: Sql,
  lease: store.Lease,
  projectors: readonly Projector[],
): Promise<readonly LogEntry[]> =>
  sql.begin(store.hand_over_settings, async (tx) => {
    const [is_held, entries] = await Promise.all([
      store.holdLease(tx, lease, lease_seconds),
      store.handOver(tx, max_per_turn),
    ]);
    if (!is_held) throw new LeaseLost();
    if (entries.length > 0) {
      await Promise.all(projectors.map((projector) => projector.record?.(tx, entries)));
    }
    return entries;
  });

/**
 * Waits until enough time has passed since the last hand-over. The wait grows with the size of that
 * hand-over, so that a few events are sent quickly and many events share one transaction.
 */
const makeGathering = () => {
  const [min_ms, max_ms] = [30, 40];
  let last_ms = 0;
  return async (last_size: number): Promise<void> => {
    const gather_ms = Math.min(Math.max(4 * last_size, min_ms), max_ms);
    const left_ms = last_ms + gather_ms - performance.now();
    if (left_ms > 0) await pause(left_ms);
    last_ms = performance.now();
  };
};

export const createRelay = (deps: Deps, options: RelayOptions): Service => {
  const { sql, redis, log, config } = deps;
  const { projectors, subscriber, poll_ms = 400 } = options;
  const prefix = config.REDIS_PREFIX;
  const writeStream = createStreamWriter({ sql, redis, prefix });
  const projection = createProjection({ sql, redis, prefix, log, projectors });
  const gather = makeGathering();
  const holder = makeId();
  let lease: store.Lease | undefined;
  /** Newest offset of the log; undefined until the outcome of a hand-over is known. */
  let head: number | undefined;
  let last_size = 0;

  const feedRedis = async (up_to: number, fresh: readonly LogEntry[]): Promise<void> => {
    if (redis.status !== 'ready') return;
    try {
      // Projections come first: when a reader gets an event, the tallies must already include it.
      await projection.update(up_to, fresh).catch(async (error: unknown) => {
        // In a cluster, another node may hold the stream, so it is written anyway. Readers notice
        // that the tallies are behind.
        if (isCluster(redis)) await writeStream(up_to, fresh);
        throw error;
      });
      await writeStream(up_to, fresh);
    } catch (error) {
      projection.forget();
      log.warn(describeError(error), 'relay: Redis is unavailable, the log continues in Postgres');
      await pause(100);
    }
  };

  const becomeActive = async (): Promise<store.Lease | undefined> => {
    const taken = await store.takeLease(sql, 'relay', holder, lease_seconds);
    if (taken === undefined) return undefined;
    await store.ensurePartitions(sql, 3);
    projection.forget();
    head = undefined;
    log.info({ fence: taken.fence }, 'relay: active');
    return taken;
  };

  const turn = async (): Promise<'again' | 'rest'> => {
    lease ??= await becomeActive();
    if (lease === undefined) return 'rest';
    await gather(last_size);
    const before = head ?? (await store.readHead(sql));
    head = undefined;
    try {
      const entries = await handOverOnce(sql, lease, projectors);
      last_size = entries.length;
      head = entries.at(-1)?.offset ?? before;
      await feedRedis(head, entries);
      return entries.length < max_per_turn ? 'rest' : 'again';
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error;
      log.warn('relay: another relay has the lease now');
      lease = undefined;
      return 'rest';
    }
  };

  const loop: Loop = makeLoop({ name: 'relay', log, every_ms: poll_ms, turn });
  return {
    name: 'relay',
    async start() {
      await joinChannel(subscriber, wakeUpChannel(prefix), () => {
        // A standby checks the lease at its own pace.
        if (lease !== undefined) loop.nudge();
      });
      await loop.start();
    },
    async stop() {
      await loop.stop();
      if (lease !== undefined) await store.dropLease(sql, lease).catch(() => undefined);
    },
  };
};

interface RedisParts {
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly prefix: string;
}

interface ProjectionParts extends RedisParts {
  readonly log: Logger;
  readonly projectors: readonly Projector[];
}

/** If more events than this have to be replayed, a rebuild of Redis is cheaper. */
const max_replayed = 50_000;
const replay_chunk = 2_000;
const ask_every_ms = 1_000;
const rebuild_rest_ms = 500;

/** Rebuilds the state in Redis while the log goes on. With many questions this takes a while. */
const createRebuild = (parts: ProjectionParts, holdConnection: () => () => void) => {
  const { redis, prefix, log, projectors } = parts;
  let is_running = false;
  const rebuild = async (target: number): Promise<void> => {
    const checkConnection = holdConnection();
    log.info({ target }, 'relay: rebuilding the state in Redis from the record');
    for (const projector of projectors) await projector.rebuild?.();
    checkConnection();
    await writeProjected(redis, prefix, target);
    log.info({ target }, 'relay: rebuilt the state in Redis');
  };
  return (target: number): void => {
    if (is_running) return;
    is_running = true;
    rebuild(target)
      .catch((error: unknown) => {
        log.warn(describeError(error), 'relay: the state in Redis could not be rebuilt');
        return pause(rebuild_rest_ms, undefined, { ref: false });
      })
      .finally(() => {
        is_running = false;
      });
  };
};

/**
 * Brings the state that Redis derives from the log up to the log's head. Redis itself stores how
 * far it is. That reveals a relay that took over, a Redis that was emptied, and one that returned
 * with an older state:
 *
 *   unknown ──read──▶ known: the events after it are projected, in order
 *      ▲        ├─ missing or too far behind ─▶ rebuilt while the log goes on, then read again
 *      │        └─ ahead of the record ─▶ emptied, then rebuilt
 *      └── each second, after an error, and when the connection ends
 *
 * Steps of different connections are never combined, because Redis may have become older in
 * between. Every step also compares the mark of each tag, because a cluster may replace a node
 * without notice.
 */
export const createProjection = (parts: ProjectionParts) => {
  const { sql, redis, prefix, log, projectors } = parts;
  let connections = 0;
  let projected: number | undefined;
  let read_ms = 0;
  const noteLoss = (): void => {
    connections += 1;
    projected = undefined;
  };
  redis.on('close', noteLoss);
  if (isCluster(redis)) redis.on('-node', noteLoss);

  /** Returns a function that throws if the current connection has ended when it is called. */
  const holdConnection = (): (() => void) => {
    const mine = connections;
    return () => {
      if (mine !== connections) throw new Error('the connection to Redis was lost meanwhile');
    };
  };
  const startRebuild = createRebuild(parts, holdConnection);

  /** Returns undefined during a rebuild. */
  const findProjected = async (head: number): Promise<number | undefined> => {
    const at = await readProjected(redis, prefix);
    read_ms = performance.now();
    if (at > head && at > (await store.readHead(sql))) {
      // A relay that took over cannot cause this: the database was replaced or lost its last
      // transactions.
      log.error({ at, head }, 'relay: Redis is ahead of the record, so it is emptied');
      await deleteKeys(redis, prefix);
    } else if (at >= 0 && head - at <= max_replayed && at + 1 >= (await readOldest(sql))) return at;
    startRebuild(head);
    return undefined;
  };

  return {
    /** Forces a new read, because Redis may hold a different state by now. */
    forget(): void {
      projected = undefined;
    },
    /** Projects up to `head`. `fresh` holds the newest entries, if the caller has them. */
    async update(head: number, fresh: readonly LogEntry[]): Promise<void> {
      const checkConnection = holdConnection();
      if (performance.now() - read_ms > ask_every_ms) projected = undefined;
      let from = projected ?? (await findProjected(head));
      while (from !== undefined && from < head) {
        const is_next = fresh[0]?.offset === from + 1;
        const entries = is_next ? fresh : await store.readEvents(sql, from, replay_chunk);
        const last = entries.at(-1);
        if (last === undefined) return;
        checkConnection();
        for (const projector of projectors) await projector.project?.(entries, from);
        checkConnection();
        await writeProjected(redis, prefix, last.offset);
        from = last.offset;
      }
      checkConnection();
      projected = from;
    },
  };
};

const script = loadScript('append-1.lua');
const stream_most = 100_000;
/** After Redis was emptied, the stream starts this many events before the head. */
const refill = 20_000;
const append_chunk = 500;

/**
 * Rebuilds the stream from the end of the log, while a relay may be writing it too. Returns its
 * length.
 */
export const rebuildStream = async (parts: RedisParts): Promise<number> => {
  const key = streamKey(parts.prefix);
  await parts.redis.del(key);
  await createStreamWriter(parts)(await store.readHead(parts.sql), []);
  return parts.redis.xlen(key);
};

/**
 * Keeps the Redis stream equal to the end of the log. The append script refuses any write that
 * would leave a hole or repeat an entry, and returns the end of the stream. So the writer needs no
 * memory: anything that was lost (the answer, the entries, all of Redis) is filled in from
 * Postgres.
 */
export const createStreamWriter = ({ sql, redis, prefix }: RedisParts) => {
  const key = streamKey(prefix);
  let at = 0;
  let checked_ms = Number.NEGATIVE_INFINITY;

  /**
   * Appends the entries and moves `at` past them. If the stream ends elsewhere, continues from its
   * end.
   */
  const append = async (after: number | 'empty', entries: readonly LogEntry[], head: number) => {
    const args = entries.flatMap((entry) => [entry.offset, ...packEntry(entry)]);
    const end = Number(await script(redis, [key], [after, stream_most, ...args]));
    if (end === -1) at = entries.at(-1)?.offset ?? at;
    else if (after === 'empty') at = end;
    else await realign(end, head);
  };

  const realign = async (end: number, head: number): Promise<void> => {
    // If the stream is ahead of this relay, another relay took over. If it is ahead of the record,
    // it belongs to an earlier database and can only mislead. If it ends before the oldest stored
    // event, the events in between are gone.
    const is_ahead = end > head && end > (await store.readHead(sql));
    if (is_ahead || (end > 0 && end + 1 < (await readOldest(sql)))) await redis.del(key);
    else if (end > 0) {
      at = end;
      return;
    }
    const entries = await store.readEvents(sql, Math.max(0, head - refill), append_chunk);
    if (entries.length > 0) await append('empty', entries, head);
  };

  /** Brings the stream up to `head`. `fresh` holds the newest entries, if the caller has them. */
  return async (head: number, fresh: readonly LogEntry[]): Promise<void> => {
    // Once a second, read the stream itself, to notice if it was emptied.
    if (performance.now() - checked_ms > 1_000) {
      const [last] = await redis.xrevrange(key, '+', '-', 'COUNT', 1);
      await realign(last === undefined ? 0 : Number(last[0].split('-')[0]), head);
      checked_ms = performance.now();
    }
    for (let turns = 0; turns < 1_000 && at < head; turns += 1) {
      const is_at_hand = (fresh[0]?.offset ?? Number.POSITIVE_INFINITY) <= at + 1;
      const entries = is_at_hand
        ? fresh.filter(({ offset }) => offset > at).slice(0, append_chunk)
        : await store.readEvents(sql, at, append_chunk);
      if (entries.length === 0) return;
      await append(at, entries, head);
    }
  };
};
