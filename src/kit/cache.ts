import { setImmediate as nextTurn } from 'node:timers/promises';
import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';

/** Loaders, caches and queues: they combine reads, store results and limit concurrency. */

interface LoaderOptions {
  /** Maximum number of keys per read. */
  readonly most?: number;
  /** Maximum number of concurrent reads. While they run, the next read collects keys. */
  readonly at_once?: number;
}

/**
 * Returns a function that reads one value by key. Calls that arrive together become one read of the
 * store. `read` gets each key once, and returns the values in the same order. No key joins a read
 * that has started, so an answer is never older than its request.
 */
export const makeLoader = <V, K = string>(
  read: (keys: readonly K[]) => Promise<readonly V[]>,
  { most = 256, at_once = 2 }: LoaderOptions = {},
): ((key: K) => Promise<V>) => {
  const limit = pLimit(at_once);
  let reading: Promise<readonly V[]> = Promise.resolve([]);
  const loader = new DataLoader<K, V>(
    (keys) => {
      loader.clearAll();
      reading = read(keys);
      return reading as Promise<V[]>;
    },
    {
      maxBatchSize: most,
      batchScheduleFn(dispatch) {
        const turn = async (): Promise<void> => {
          await nextTurn();
          dispatch();
          await reading;
        };
        // The callers get the error. Here it only ends the turn.
        limit(turn).catch(() => undefined);
      },
    },
  );
  return (key) => loader.load(key);
};

interface CacheOptions<V> {
  /** Maximum number, or total size, of the values. The least recently used is dropped first. */
  readonly most: number;
  readonly sizeOf?: (value: V) => number;
  /** Lifetime of a value, from the start of its read. If missing, values never expire. */
  readonly ttl_ms?: number;
  /** Returns true if the value may be cached. If missing, every value is cached. */
  readonly isKept?: (value: V) => boolean;
}

interface Entry<V> {
  value?: V;
  reading: Promise<V>;
}

/** Creates an LRU cache that reads missing values. */
export const makeCache = <V>(options: CacheOptions<V>) => {
  const { most, ttl_ms = 0, sizeOf = () => 1, isKept = () => true } = options;
  const entries = new LRUCache<string, Entry<V>>({ maxSize: most, ttl: ttl_ms });
  const start = (key: string, read: () => Promise<V>): Promise<V> => {
    const begun = performance.now();
    const isHere = (): boolean => entries.peek(key) === entry;
    const entry: Entry<V> = {
      reading: read().then(
        (value) => {
          if (!isHere()) return value;
          const options = { size: sizeOf(value), start: begun };
          if (isKept(value)) entries.set(key, { ...entry, value }, options);
          else entries.delete(key);
          return value;
        },
        (error: unknown) => {
          if (isHere()) entries.delete(key);
          throw error;
        },
      ),
    };
    entries.set(key, entry, { size: 1, start: begun });
    return entry.reading;
  };
  return {
    /** Returns a cached value directly, else a promise. Concurrent callers share one read. */
    get(key: string, read: () => Promise<V>): V | Promise<V> {
      const entry = entries.get(key);
      return entry === undefined ? start(key, read) : (entry.value ?? entry.reading);
    },
    peek: (key: string): V | undefined => entries.peek(key)?.value,
    /** Removes an entry. A value that is still being read is not cached. */
    forget: (key: string): void => void entries.delete(key),
    /** Removes the matching entries. While an entry is still being read, its value is undefined. */
    forgetWhere(matches: (key: string, value: V | undefined) => boolean): void {
      for (const [key, { value }] of [...entries.entries()]) {
        if (matches(key, value)) entries.delete(key);
      }
    },
  };
};

export class BusyError extends Error {}

/** Returns a queue. `at_once` calls run, `max_waiting` wait, and more reject with `BusyError`. */
export const makeQueue = (at_once: number, max_waiting: number) => {
  const limit = pLimit(at_once);
  return async <T>(work: () => Promise<T>): Promise<T> => {
    const inside = limit.activeCount + limit.pendingCount;
    if (inside >= at_once + max_waiting) throw new BusyError('too many wait');
    return limit(work);
  };
};

interface FairPoolOptions {
  readonly at_once: number;
  readonly of_each: number;
  readonly waiting: number;
  readonly waiting_of_each: number;
}

/**
 * Limits running and waiting work, in total and per key. If there is no room to wait, `run` does
 * nothing and returns undefined.
 */
export const makeFairPool = (room: FairPoolOptions) => {
  const all = pLimit(room.at_once);
  const queues = new Map<string, { readonly limit: LimitFunction; inside: number }>();
  let inside = 0;
  return {
    async run<T>(key: string, work: () => Promise<T>): Promise<T | undefined> {
      const queue = queues.get(key) ?? { limit: pLimit(room.of_each), inside: 0 };
      if (inside >= room.at_once + room.waiting) return undefined;
      if (queue.inside >= room.of_each + room.waiting_of_each) return undefined;
      queues.set(key, queue);
      queue.inside += 1;
      inside += 1;
      try {
        return await queue.limit(() => all(work));
      } finally {
        inside -= 1;
        queue.inside -= 1;
        if (queue.inside === 0) queues.delete(key);
      }
    },
  };
};
