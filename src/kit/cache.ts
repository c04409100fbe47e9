import { setImmediate as nextTurn } from 'node:timers/promises';
import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';

/** Loaders, caches and queues: reads that go together, are kept for a while, and wait in line. */

interface LoaderOptions {
  /** Most keys of one reading. */
  readonly most?: number;
  /** Readings under way at once; meanwhile the next one gathers keys. */
  readonly at_once?: number;
}

/**
 * Reads by key that are asked for one by one and go to the store together. `read` answers in the
 * order of the keys, which are all different. A reading that has begun takes nobody in: the answer
 * is never older than the question.
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
        // The callers get the failure; here only the turn ends.
        limit(turn).catch(() => undefined);
      },
    },
  );
  return (key) => loader.load(key);
};

interface CacheOptions<V> {
  /** Values, or the sum of their sizes; the longest unused goes first. */
  readonly most: number;
  readonly sizeOf?: (value: V) => number;
  /** From the beginning of the reading; left out: for as long as there is room. */
  readonly ttl_ms?: number;
  /** Left out: everything is kept. */
  readonly isKept?: (value: V) => boolean;
}

interface Entry<V> {
  value?: V;
  reading: Promise<V>;
}

/** A cache of values that were read. */
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
    /** A value without a promise where it is known; callers during a reading share it. */
    get(key: string, read: () => Promise<V>): V | Promise<V> {
      const entry = entries.get(key);
      return entry === undefined ? start(key, read) : (entry.value ?? entry.reading);
    },
    peek: (key: string): V | undefined => entries.peek(key)?.value,
    /** A value that is being read is not kept either. */
    forget: (key: string): void => void entries.delete(key),
    /** Forgets the entries that match; an entry that is being read has no value yet. */
    forgetWhere(matches: (key: string, value: V | undefined) => boolean): void {
      for (const [key, { value }] of [...entries.entries()]) {
        if (matches(key, value)) entries.delete(key);
      }
    },
  };
};

export class BusyError extends Error {}

/** Lets so many do something at once, and so many wait; others are rejected with a `BusyError`. */
export const makeQueue = (at_once: number, most_waiting: number) => {
  const limit = pLimit(at_once);
  return async <T>(work: () => Promise<T>): Promise<T> => {
    const inside = limit.activeCount + limit.pendingCount;
    if (inside >= at_once + most_waiting) throw new BusyError('too many wait');
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
 * Bounds work at once and in waiting, over all and for each key. Undefined, and nothing is done,
 * when there is no room to wait.
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
