import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Sql, Tx } from '../../db/client.js';
import { describeError } from '../../kit/log.js';
import { deleteKeys } from '../../redis/client.js';
import { type LogEntry, projectedKey } from './log-entry.js';
import { readEvents, readHead } from './store.js';

/**
 * Brings what Redis keeps of the log up to its head. How far it is stands in Redis, beside what it
 * is about, so that a relay that takes over, a Redis that was emptied and one that came back with
 * an older state are all found out:
 *
 *   unknown ──asked──▶ known: the events after it are projected, in order
 *      ▲        ├─ missing or too far behind ─▶ made anew beside the log, then asked again
 *      │        └─ ahead of the record ─▶ emptied, then made anew
 *      └── each second, after an error, and when the connection ends
 *
 * A step of one connection never follows a step of another: in between Redis may have become older.
 */

export interface Projector {
  readonly name: string;
  /** Writes that commit together with the offsets. */
  record?(tx: Tx, entries: readonly LogEntry[]): Promise<void>;
  /** Updates of Redis, some time later; must be idempotent on the offsets of the entries. */
  project?(entries: readonly LogEntry[]): Promise<void>;
  /** Redis lost its state: make it again from the record. */
  rebuild?(): Promise<void>;
}

export interface ProjectionParts {
  readonly sql: Sql;
  readonly redis: Redis;
  readonly prefix: string;
  readonly log: Logger;
  readonly projectors: readonly Projector[];
}

/** Further behind than this, making Redis anew is cheaper than replaying. */
const most_replayed = 50_000;
const replay_chunk = 2_000;
const ask_every_ms = 1_000;
const rebuild_rest_ms = 500;

export const createProjection = (parts: ProjectionParts) => {
  const { sql, redis, prefix, log, projectors } = parts;
  const key = projectedKey(prefix);
  let connections = 0;
  let projected: number | undefined;
  let asked_ms = 0;
  let is_rebuilding = false;
  let rebuild_not_before_ms = 0;
  redis.on('close', () => {
    connections += 1;
    projected = undefined;
  });

  /** Throws once the connection of the moment of this call is over. */
  const holdConnection = (): (() => void) => {
    const mine = connections;
    return () => {
      if (mine !== connections) throw new Error('Redis was away in between');
    };
  };

  const rebuild = async (target: number): Promise<void> => {
    const checkConnection = holdConnection();
    for (const projector of projectors) await projector.rebuild?.();
    checkConnection();
    await redis.set(key, target);
    log.info({ target }, 'relay: the state in Redis is made anew');
  };

  /** Runs beside the log: with many questions it takes long, and events go on meanwhile. */
  const startRebuild = (target: number): void => {
    if (is_rebuilding || performance.now() < rebuild_not_before_ms) return;
    is_rebuilding = true;
    log.info({ target }, 'relay: making the state in Redis anew from the record');
    rebuild(target)
      .catch((error: unknown) => {
        log.warn(describeError(error), 'relay: the state in Redis could not be made anew');
        rebuild_not_before_ms = performance.now() + rebuild_rest_ms;
      })
      .finally(() => {
        is_rebuilding = false;
      });
  };

  /** Undefined while it is being made anew. */
  const askRedis = async (head: number): Promise<number | undefined> => {
    const kept = await redis.get(key);
    asked_ms = performance.now();
    const at = kept === null ? -1 : Number(kept);
    if (at > head && at > (await readHead(sql))) {
      // Not another relay that took over: the database was replaced, or lost its last transactions.
      log.error({ at, head }, 'relay: Redis is ahead of the record, and is emptied');
      await deleteKeys(redis, prefix);
    } else if (at >= 0 && head - at <= most_replayed) return at;
    startRebuild(head);
    return undefined;
  };

  return {
    /** What was known about Redis may no longer hold. */
    forget(): void {
      projected = undefined;
    },
    /** Projects up to `head`; `fresh` are the newest entries where they are at hand. */
    async update(head: number, fresh: readonly LogEntry[]): Promise<void> {
      const checkConnection = holdConnection();
      if (performance.now() - asked_ms > ask_every_ms) projected = undefined;
      let from = projected ?? (await askRedis(head));
      while (from !== undefined && from < head) {
        const is_next = fresh[0]?.offset === from + 1;
        const entries = is_next ? fresh : await readEvents(sql, from, replay_chunk);
        const last = entries[entries.length - 1];
        if (last === undefined) return;
        checkConnection();
        for (const projector of projectors) await projector.project?.(entries);
        checkConnection();
        await redis.set(key, last.offset);
        from = last.offset;
      }
      checkConnection();
      projected = from;
    },
  };
};
