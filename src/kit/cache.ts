import { setImmediate as nextTurn } from 'node:timers/promises';
import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';

export interface LoaderOptions {
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
export const makeLoader = <V>(
  read: (keys: readonly string[]) => Promise<readonly V[]>,
  { most = 256, at_once = 2 }: LoaderOptions = {},
): ((key: string) => Promise<V>) => {
  const limit = pLimit(at_once);
  let reading: Promise<readonly V[]> = Promise.resolve([]);
  const loader = new DataLoader<string, V>(
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
        // Those who asked are told of a failure; here only the turn ends.
        limit(turn).catch(() => undefined);
      },
    },
  );
  return (key) => loader.load(key);
};

interface Entry<V> {
  value: V | undefined;
  reading: Promise<V>;
}

export interface ReadCache<V> {
  /** A value without a promise where it is known. */
  get(key: string): V | Promise<V>;
  forget(key: string): void;
  /** Forgets all values of which this holds. */
  forgetWhere(matches: (value: V) => boolean): void;
  size(): number;
}

export interface ReadCacheOptions<V> {
  readonly most: number;
  /** From the beginning of the reading. */
  readonly ttl_ms: number;
  readonly read: (key: string) => Promise<V>;
  /** What does not stay is read by each who asks after the reading; left out: everything stays. */
  readonly isKept?: (value: V) => boolean;
}

/** Remembers what was read; those who ask during a reading share it, unless it is forgotten. */
export const makeReadCache = <V>(options: ReadCacheOptions<V>): ReadCache<V> => {
  const { most, ttl_ms, read, isKept = () => true } = options;
  const entries = new LRUCache<string, Entry<V>>({ max: most, ttl: ttl_ms });
  const start = (key: string): Promise<V> => {
    const drop = (): void => {
      if (entries.peek(key, { allowStale: true }) === entry) entries.delete(key);
    };
    const entry: Entry<V> = {
      value: undefined,
      reading: read(key).then(
        (value) => {
          if (isKept(value)) entry.value = value;
          else drop();
          return value;
        },
        (error: unknown) => {
          drop();
          throw error;
        },
      ),
    };
    entries.set(key, entry);
    return entry.reading;
  };
  return {
    get(key) {
      const entry = entries.get(key);
      return entry === undefined ? start(key) : (entry.value ?? entry.reading);
    },
    forget: (key) => void entries.delete(key),
    forgetWhere(matches) {
      for (const [key, { value }] of [...entries.entries()]) {
        if (value === undefined || matches(value)) entries.delete(key);
      }
    },
    size: () => entries.size,
  };
};
