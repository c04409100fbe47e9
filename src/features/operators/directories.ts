import { LRUCache } from 'lru-cache';
import type { Config } from '../../config.js';
import { makeFairPool } from '../../kit/cache.js';
import { createGuardedClient, outboundOptions } from '../../kit/outbound/client.js';
import { directory_path, directory_type, type Keys, readKeys } from './rules.js';

/**
 * This process's cache of the operators' key directories. Requests do not wait for a directory: it
 * is fetched in the background while they use the cached keys. It is fetched again when it is stale
 * or lacks a key that a request names, but at most once a minute. Few fetches run at the same time,
 * and at most one per agent. If a directory cannot be reached, its keys are used for up to a day.
 */

const client_limits = { wall_ms: 5_000, answer_bytes: 65_536, kept_bytes: 65_536 };
const room = { at_once: 8, of_each: 1, waiting: 64, waiting_of_each: 1 };
const max_kept = 2_000;
const s = 1_000;
const min_ms = 60 * s;
const usual_ms = 3_600 * s;
const longest_ms = 86_400 * s;

/** Returns a response's max-age in ms: an hour by default, at least a minute, at most a day. */
const freshness = (cache_control: string): number => {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(cache_control)?.[1];
  const asked_ms = seconds === undefined ? usual_ms : Number(seconds) * s;
  return Math.min(Math.max(asked_ms, min_ms), longest_ms);
};

export type DirectoryReader = ReturnType<typeof createDirectoryReader>;

export const createDirectoryReader = (config: Config) => {
  const client = createGuardedClient({ ...outboundOptions(config), limits: client_limits });
  const headers = { Accept: `${directory_type}, application/json`, Connection: 'close' };
  return {
    /** Returns null if there is no directory or it cannot be reached. */
    async read(origin: string, now: Date): Promise<{ keys: Keys; fresh_ms: number } | null> {
      const target = client.parse(origin + directory_path);
      if (target.kind === 'problem') return null;
      const { status, error, answer, cache_control } = await client.look({
        target,
        method: 'GET',
        headers,
      });
      const keys = status === 200 && error === null ? readKeys(answer, now.getTime() / s) : null;
      return keys === null ? null : { keys, fresh_ms: freshness(cache_control) };
    },
    close: () => client.close(),
  };
};

interface Known {
  readonly keys: Keys | null;
  readonly read_ms: number;
  /** The directory is not fetched again before this time. */
  readonly rests_until_ms: number;
  readonly stale_ms: number;
}

interface DirectoriesOptions {
  readonly reader: DirectoryReader;
  readonly clock: () => Date;
  readonly onRead: (origin: string, keys: Keys) => Promise<void>;
  /** Minimum time between two fetches of a directory, even if the first one failed. */
  readonly rest_ms?: number;
}

export const createDirectories = (options: DirectoriesOptions) => {
  const { reader, clock, onRead, rest_ms = min_ms } = options;
  const known = new LRUCache<string, Known>({ max: max_kept });
  const readings = new Map<string, Promise<Keys | null>>();
  const pool = makeFairPool(room);

  const fetchKeys = async (origin: string, agent_id: string): Promise<Keys | null> => {
    const result = await pool.run(agent_id, () => reader.read(origin, clock()));
    // The pool was full. The next request tries again.
    if (result === undefined) return null;
    const now_ms = performance.now();
    const old = known.get(origin);
    const rests_until_ms = now_ms + rest_ms;
    if (result === null) {
      const keys = old !== undefined && now_ms - old.read_ms < longest_ms ? old.keys : null;
      const read_ms = old?.read_ms ?? now_ms;
      known.set(origin, { keys, read_ms, rests_until_ms, stale_ms: rests_until_ms });
      return null;
    }
    const { keys, fresh_ms } = result;
    known.set(origin, { keys, read_ms: now_ms, rests_until_ms, stale_ms: now_ms + fresh_ms });
    await onRead(origin, keys);
    return keys;
  };

  const startReading = (origin: string, agent_id: string): Promise<Keys | null> => {
    const reading = readings.get(origin) ?? fetchKeys(origin, agent_id);
    readings.set(origin, reading);
    void reading.finally(() => readings.delete(origin)).catch(() => undefined);
    return reading;
  };

  return {
    /** Returns the cached keys, even if stale, or a promise if only a fetch can find the key. */
    find(origin: string, keyid: string, agent_id: string): Keys | Promise<Keys | null> {
      const one = known.get(origin);
      const now_ms = performance.now();
      const has_key = one?.keys?.has(keyid) ?? false;
      const is_due =
        now_ms >= (one?.rests_until_ms ?? 0) && (!has_key || now_ms >= (one?.stale_ms ?? 0));
      const reading = is_due ? startReading(origin, agent_id) : readings.get(origin);
      if (one?.keys != null && (has_key || reading === undefined)) return one.keys;
      return reading ?? Promise.resolve(null);
    },
  };
};
