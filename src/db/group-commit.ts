import { isOutage } from '../kit/outage.js';

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
export type GroupCommit<D, V> = ReturnType<typeof createGroupCommit<D, V>>;

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
type Fits<D> = (draft: D) => boolean;

/** What waits, in the order of arrival. */
const makeQueue = <D, V>({ key, one_a_key = false, most = 128 }: GroupCommitOptions<D, V>) => {
  let waiting: Entry<D, V>[] = [];
  return {
    get length(): number {
      return waiting.length;
    },
    push(draft: D, settle: Pick<Entry<D, V>, 'resolve' | 'reject'>): void {
      waiting.push({ draft, key: key(draft), ...settle });
    },
    /** Moves what fits into the batch, as far as there is room. */
    take(into: Entry<D, V>[], fits: Fits<D>): void {
      const left: Entry<D, V>[] = [];
      /** Keys of drafts that stay, and of those that may come only once. */
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
    },
  };
};

/** Commits a batch and gives what settles every entry; never rejects. */
const store = async <D, V>(
  commit: GroupCommitOptions<D, V>['commit'],
  entries: Entry<D, V>[],
  join: Batch<D>['join'],
): Promise<Settle> => {
  const batch: Batch<D> = {
    get drafts() {
      return entries.map(({ draft }) => draft);
    },
    join,
  };
  try {
    const verdicts = await commit(batch);
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
  for (const entry of entries) (await store(commit, [entry], () => undefined))();
  return () => undefined;
};

export const createGroupCommit = <D, V>(options: GroupCommitOptions<D, V>) => {
  const { commit, queue: most_waiting = 20_000 } = options;
  const queue = makeQueue(options);
  let is_running = false;
  const idle: Settle[] = [];
  let batches = 0;
  let drafts = 0;

  const run = async (): Promise<void> => {
    let settle: Settle | null = null;
    while (queue.length > 0) {
      const entries: Entry<D, V>[] = [];
      queue.take(entries, () => true);
      const stored = store(commit, entries, (fits) => queue.take(entries, fits));
      // The answers to one batch are made while Postgres works on the next.
      settle?.();
      settle = await stored;
      batches += 1;
      drafts += entries.length;
    }
    is_running = false;
    settle?.();
    for (const done of idle.splice(0)) done();
  };

  return {
    get stats() {
      return { batches, drafts, waiting: queue.length };
    },
    /** Resolves with the verdict. */
    add: (draft: D): Promise<V> =>
      new Promise((resolve, reject) => {
        if (queue.length >= most_waiting) {
          reject(new QueueFullError('too many drafts are waiting'));
          return;
        }
        queue.push(draft, { resolve, reject });
        if (is_running) return;
        is_running = true;
        // After this turn of the event loop, so that what comes in it goes together.
        setImmediate(() => void run());
      }),
    /** Waits until everything that was added is settled. */
    drain: (): Promise<void> =>
      new Promise((resolve) => {
        if (is_running) idle.push(resolve);
        else resolve();
      }),
  };
};
