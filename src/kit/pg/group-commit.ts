import { isOutage } from './client.js';

/**
 * Group commit: the drafts of many calls are stored by one transaction, each with a verdict of its
 * own. There is one queue and one transaction at a time; while it runs, the next batch gathers, so
 * batches grow with the load and a lonely draft waits for nobody. A transaction that holds its
 * locks may take drafts in that came meanwhile (`join`).
 *
 * A batch that failed with an outage is rejected: its outcome may be unknown, and the callers get
 * 503. After any other error nothing was stored, and each draft is committed once more by itself,
 * so that a bad draft fails alone.
 */
export interface GroupCommit<D, V> {
  /** Resolves with the verdict. */
  add(draft: D): Promise<V>;
  /** Waits until everything that was added is settled. */
  drain(): Promise<void>;
  readonly stats: { batches: number; drafts: number; waiting: number };
}

export interface Batch<D> {
  /** In the order of arrival; `join` adds to it. */
  readonly drafts: readonly D[];
  /** Takes waiting drafts that fit, as far as there is room. */
  join(fits: (draft: D) => boolean): void;
}

export interface GroupCommitOptions<D, V> {
  /** Carries out one transaction; a verdict for each draft, in the order of `batch.drafts`. */
  readonly commit: (batch: Batch<D>) => Promise<readonly V[]>;
  /** Drafts of one key never overtake each other. */
  readonly key: (draft: D) => string;
  /** A batch takes one draft of a key only. */
  readonly one_a_key?: boolean;
  /** Most drafts in a batch. */
  readonly most?: number;
  /** Most drafts waiting; above it `add` rejects at once. */
  readonly queue?: number;
}

export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

interface Entry<D, V> {
  readonly draft: D;
  readonly key: string;
  readonly resolve: (verdict: V) => void;
  readonly reject: (error: unknown) => void;
}

type Settle = () => void;

export const createGroupCommit = <D, V>({
  commit,
  key,
  one_a_key = false,
  most = 128,
  queue = 20_000,
}: GroupCommitOptions<D, V>): GroupCommit<D, V> => {
  let waiting: Entry<D, V>[] = [];
  let is_running = false;
  const idle: Settle[] = [];
  const stats = { batches: 0, drafts: 0, waiting: 0 };

  const take = (into: Entry<D, V>[], fits: (draft: D) => boolean): void => {
    const left: Entry<D, V>[] = [];
    /** Keys of drafts that stay, and of those that may come once only. */
    const closed = new Set(one_a_key ? into.map((entry) => entry.key) : []);
    for (const entry of waiting) {
      if (into.length < most && !closed.has(entry.key) && fits(entry.draft)) {
        into.push(entry);
        if (one_a_key) closed.add(entry.key);
      } else {
        left.push(entry);
        closed.add(entry.key);
      }
    }
    waiting = left;
    stats.waiting = waiting.length;
  };

  /** Gives what settles every entry; never rejects. */
  const store = async (
    entries: Entry<D, V>[],
    join: (fits: (draft: D) => boolean) => void,
  ): Promise<Settle> => {
    const batch: Batch<D> = {
      get drafts() {
        return entries.map(({ draft }) => draft);
      },
      join,
    };
    try {
      const verdicts = await commit(batch);
      stats.batches += 1;
      stats.drafts += entries.length;
      return () => {
        for (const [n, entry] of entries.entries()) entry.resolve(verdicts[n] as V);
      };
    } catch (error) {
      if (isOutage(error) || entries.length === 1) {
        return () => {
          for (const entry of entries) entry.reject(error);
        };
      }
    }
    for (const entry of entries) (await store([entry], () => undefined))();
    return () => undefined;
  };

  const run = async (): Promise<void> => {
    let settle: Settle | null = null;
    while (waiting.length > 0) {
      const entries: Entry<D, V>[] = [];
      take(entries, () => true);
      const stored = store(entries, (fits) => take(entries, fits));
      // The answers to one batch are made while Postgres works on the next.
      settle?.();
      settle = await stored;
    }
    is_running = false;
    settle?.();
    for (const done of idle.splice(0)) done();
  };

  /** After this turn of the event loop, so that what comes in it goes together. */
  const start = (): void => {
    if (is_running) return;
    is_running = true;
    setImmediate(() => void run());
  };

  return {
    stats,
    add: (draft) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= queue) {
          reject(new QueueFullError('too many drafts are waiting'));
          return;
        }
        waiting.push({ draft, key: key(draft), resolve, reject });
        stats.waiting = waiting.length;
        start();
      }),
    drain: () =>
      new Promise((resolve) => {
        if (is_running) idle.push(resolve);
        else resolve();
      }),
  };
};
