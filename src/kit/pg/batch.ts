import { isOutage } from './client.js';

/**
 * Group commit: drafts of all connections gather and go to Postgres as one statement a batch, each
 * keeping its own verdict. While a batch is under way the next one gathers, so batches grow with
 * the load and a lonely draft waits for nobody.
 *
 * - Two drafts with the same `key` never share a batch: the later one waits for the next.
 * - `run` must be idempotent (a draft that is already stored, recognised by its id, counts as
 *   stored): after an outage the fate of a commit is unknown and the batch is run again.
 * - A batch that fails for another reason is run again draft by draft, so that one poisonous draft
 *   fails alone.
 */

export interface Batcher<D, V> {
  /** Resolves with the verdict; rejects when the store stays away longer than the patience. */
  add(draft: D): Promise<V>;
  /** Waits until everything that was added is settled. */
  drain(): Promise<void>;
  readonly stats: { batches: number; drafts: number; waiting: number };
}

export interface BatcherOptions<D, V> {
  readonly run: (drafts: readonly D[]) => Promise<readonly V[]>;
  readonly key: (draft: D) => string;
  readonly most: number;
  /** Batches under way at once. */
  readonly lanes: number;
  /** How long a draft may wait through an outage before it is given up. */
  readonly patience_ms: number;
  /** Most drafts waiting; above it `add` rejects at once. */
  readonly queue: number;
}

interface Entry<D, V> {
  readonly draft: D;
  readonly key: string;
  readonly since: number;
  readonly resolve: (verdict: V) => void;
  readonly reject: (error: unknown) => void;
}

export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** The next batch in the order of arrival, without a key twice, and what is left for later. */
const takeBatch = <D, V>(waiting: readonly Entry<D, V>[], most: number) => {
  const taken: Entry<D, V>[] = [];
  const left: Entry<D, V>[] = [];
  const keys = new Set<string>();
  for (const entry of waiting) {
    if (taken.length < most && !keys.has(entry.key)) {
      keys.add(entry.key);
      taken.push(entry);
    } else left.push(entry);
  }
  return { taken, left };
};

/** Gives what settles every entry; never rejects. */
const runThrough = async <D, V>(
  { run, patience_ms }: Pick<BatcherOptions<D, V>, 'run' | 'patience_ms'>,
  entries: readonly Entry<D, V>[],
): Promise<() => void> => {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const verdicts = await run(entries.map((entry) => entry.draft));
      return () =>
        entries.forEach((entry, index) => {
          entry.resolve(verdicts[index] as V);
        });
    } catch (error) {
      const oldest = entries[0]?.since ?? 0;
      if (isOutage(error) && performance.now() - oldest < patience_ms) {
        await pause(Math.min(20 * 2 ** attempt, 400));
      } else if (!isOutage(error) && entries.length > 1) {
        for (const entry of entries) (await runThrough({ run, patience_ms }, [entry]))();
        return () => undefined;
      } else {
        return () => {
          for (const entry of entries) entry.reject(error);
        };
      }
    }
  }
};

export const createBatcher = <D, V>(options: BatcherOptions<D, V>): Batcher<D, V> => {
  const { key, most, lanes, queue } = options;
  let waiting: Entry<D, V>[] = [];
  let under_way = 0;
  let scheduled = false;
  let idle: (() => void)[] = [];
  const stats = { batches: 0, drafts: 0, waiting: 0 };

  const pump = (): void => {
    scheduled = false;
    while (under_way < lanes && waiting.length > 0) {
      const { taken: entries, left } = takeBatch(waiting, most);
      waiting = left;
      under_way += 1;
      stats.batches += 1;
      stats.drafts += entries.length;
      void runThrough(options, entries).then((settle) => {
        under_way -= 1;
        // Before the answers to this batch are made: Postgres works on the next one meanwhile.
        pump();
        settle();
        if (under_way === 0 && waiting.length === 0) for (const done of idle.splice(0)) done();
      });
    }
    stats.waiting = waiting.length;
  };

  const schedule = (): void => {
    if (scheduled || under_way >= lanes || waiting.length === 0) return;
    scheduled = true;
    setImmediate(pump);
  };

  return {
    stats,
    add: (draft) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= queue) {
          reject(new QueueFullError('too many drafts are waiting'));
          return;
        }
        const since = performance.now();
        waiting.push({ draft, key: key(draft), since, resolve, reject });
        schedule();
      }),
    drain: () =>
      new Promise((resolve) => {
        if (under_way === 0 && waiting.length === 0) resolve();
        else idle = [...idle, resolve];
      }),
  };
};
