import { isOutage } from '../kit/outage.js';

/**
 * Group commit: one transaction stores the drafts of many calls, each with its own verdict. There
 * is one queue and one transaction at a time. Drafts that arrive meanwhile form the next batch. So
 * batches grow with the load, and a single draft does not wait.
 *
 * If an outage makes a batch fail, it is rejected: its outcome may be unknown, and the callers get
 * 503. After any other error nothing was stored, and each draft is committed once more on its own,
 * so that only the bad draft fails.
 */
export type GroupCommit<D, V> = ReturnType<typeof createGroupCommit<D, V>>;

export interface GroupCommitOptions<D, V> {
  /** Runs one transaction. Returns one verdict per draft, in the order of the drafts. */
  readonly commit: (drafts: readonly D[]) => Promise<readonly V[]>;
  /** Returns a draft's key. A batch takes only one draft per key. Default: no keys. */
  readonly one_of?: (draft: D) => string;
  /** Maximum number of drafts in a batch. */
  readonly most?: number;
  /** Maximum number of waiting drafts. If there are more, `add` rejects at once. */
  readonly queue?: number;
}

export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

interface Entry<D, V> {
  readonly draft: D;
  readonly resolve: (verdict: V) => void;
  readonly reject: (error: unknown) => void;
}

type Settle = () => void;

/** Takes the next batch from the waiting drafts, in order of arrival. */
const takeBatch = <D, V>(
  waiting: Entry<D, V>[],
  { one_of, most = 128 }: GroupCommitOptions<D, V>,
): Entry<D, V>[] => {
  if (one_of === undefined) return waiting.splice(0, most);
  const taken: Entry<D, V>[] = [];
  const left: Entry<D, V>[] = [];
  const keys = new Set<string>();
  for (const entry of waiting) {
    const key = one_of(entry.draft);
    if (taken.length < most && !keys.has(key)) taken.push(entry);
    else left.push(entry);
    keys.add(key);
  }
  waiting.splice(0, waiting.length, ...left);
  return taken;
};

/** Commits a batch and returns a function that settles every entry. Never rejects. */
const store = async <D, V>(
  commit: GroupCommitOptions<D, V>['commit'],
  entries: readonly Entry<D, V>[],
): Promise<Settle> => {
  try {
    const verdicts = await commit(entries.map(({ draft }) => draft));
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
  for (const entry of entries) (await store(commit, [entry]))();
  return () => undefined;
};

export const createGroupCommit = <D, V>(options: GroupCommitOptions<D, V>) => {
  const { commit, queue: max_waiting = 20_000 } = options;
  const waiting: Entry<D, V>[] = [];
  let is_running = false;
  const idle: Settle[] = [];
  let batches = 0;
  let drafts = 0;

  const run = async (): Promise<void> => {
    let settle: Settle | null = null;
    while (waiting.length > 0) {
      const entries = takeBatch(waiting, options);
      const stored = store(commit, entries);
      // The callers of one batch are answered while Postgres works on the next batch.
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
      return { batches, drafts, waiting: waiting.length };
    },
    /** Adds a draft to the queue. Resolves with its verdict. */
    add: (draft: D): Promise<V> =>
      new Promise((resolve, reject) => {
        if (waiting.length >= max_waiting) {
          reject(new QueueFullError('too many drafts are waiting'));
          return;
        }
        waiting.push({ draft, resolve, reject });
        if (is_running) return;
        is_running = true;
        // Starts after this turn of the event loop, so that all drafts of the turn share a batch.
        setImmediate(() => void run());
      }),
    /** Waits until every added draft is settled. */
    drain: (): Promise<void> =>
      new Promise((resolve) => {
        if (is_running) idle.push(resolve);
        else resolve();
      }),
  };
};
