import { isOutage, isWriteRefused } from './client.js';

/**
 * Group commit: drafts of all connections gather and go to Postgres as one statement a batch, each
 * keeping its own verdict. While a batch is under way the next one gathers, so batches grow with
 * the load and a lonely draft waits for nobody.
 *
 * - Two drafts with the same `key` are never under way in two batches: the later one waits until
 *   the earlier one is settled, or goes in the same batch behind it where `keys_together` says so.
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
  /** `tell` gives the verdict of a draft to whoever waits for it while others go on. */
  readonly run: (
    drafts: readonly D[],
    tell: (index: number, verdict: V) => void,
  ) => Promise<readonly V[]>;
  readonly key: (draft: D) => string;
  /** A batch may have several drafts of one key, in the order of arrival. */
  readonly keys_together?: boolean;
  readonly most: number;
  /** Batches under way at once. */
  readonly lanes: number;
  /**
   * For runs that follow each other on one connection: as soon as so many drafts wait they go out
   * beside what is under way, and what waits is shared by the lanes that are left. Without it all
   * drafts of a closed loop end up in one batch, and nobody works while that one is stored.
   */
  readonly least_beside?: number;
  /**
   * A batch begins so long after one of several drafts, unless `least_beside` wait: a statement
   * costs about as much for one draft as for ten. Behind a draft that came alone nobody waits.
   */
  readonly apart_ms?: number;
  /** How long a draft may wait through an outage before it is given up. */
  readonly patience_ms: number;
  /** The same while Postgres refuses writes, which often lasts longer; `patience_ms` if absent. */
  readonly refused_ms?: number;
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

/**
 * The keys of a batch. Each has a set of its own: one whose members come and go all the time keeps
 * what it held, see `roll.ts`.
 */
type Keys = ReadonlySet<string>;

interface Taking {
  readonly most: number;
  readonly keys_together: boolean | undefined;
  readonly under_way: readonly Keys[];
}

/** The next batch in the order of arrival, without the keys under way, and what is left. */
const takeBatch = <D, V>(
  waiting: readonly Entry<D, V>[],
  { most, keys_together = false, under_way }: Taking,
) => {
  const taken: Entry<D, V>[] = [];
  const left: Entry<D, V>[] = [];
  const keys = new Set<string>();
  for (const entry of waiting) {
    const { key } = entry;
    const is_free = keys_together || !keys.has(key);
    if (taken.length < most && is_free && !under_way.some((other) => other.has(key))) {
      keys.add(key);
      taken.push(entry);
    } else left.push(entry);
  }
  return { taken, left, keys };
};

/** Gives what settles every entry; never rejects. */
const runThrough = async <D, V>(
  options: Pick<BatcherOptions<D, V>, 'run' | 'patience_ms' | 'refused_ms'>,
  entries: readonly Entry<D, V>[],
): Promise<() => void> => {
  const { run, patience_ms, refused_ms = patience_ms } = options;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const verdicts = await run(
        entries.map((entry) => entry.draft),
        (index, verdict) => entries[index]?.resolve(verdict),
      );
      return () =>
        entries.forEach((entry, index) => {
          entry.resolve(verdicts[index] as V);
        });
    } catch (error) {
      const oldest = entries[0]?.since ?? 0;
      const most_ms = isWriteRefused(error) ? refused_ms : patience_ms;
      if (isOutage(error) && performance.now() - oldest < most_ms) {
        await pause(Math.min(20 * 2 ** attempt, 400));
      } else if (!isOutage(error) && entries.length > 1) {
        for (const entry of entries) (await runThrough(options, [entry]))();
        return () => undefined;
      } else {
        return () => {
          for (const entry of entries) entry.reject(error);
        };
      }
    }
  }
};

type Sizes = Pick<BatcherOptions<never, never>, 'most' | 'lanes' | 'least_beside'>;

const sizesOf = ({ most, lanes, least_beside }: Sizes) => ({
  /** How many drafts are worth a batch; beside at most `few` others any number is. */
  least: (under_way: number, few: number): number => (under_way <= few ? 1 : (least_beside ?? 1)),
  most(waiting: number, under_way: number): number {
    if (least_beside === undefined) return most;
    const share = Math.ceil(waiting / (lanes - under_way));
    return Math.min(Math.max(share, least_beside), most);
  },
});

/** Keeps batches apart; `goOn` is called when what came too soon may go. */
const makePace = (
  {
    apart_ms = 0,
    least_beside = 1,
  }: Pick<BatcherOptions<never, never>, 'apart_ms' | 'least_beside'>,
  goOn: () => void,
) => {
  let due_ms = Number.NEGATIVE_INFINITY;
  let is_alarm_set = false;
  return {
    begins(drafts: number): void {
      due_ms = drafts > 1 ? performance.now() + apart_ms : Number.NEGATIVE_INFINITY;
    },
    isTooSoon(waiting: number): boolean {
      const left_ms = due_ms - performance.now();
      if (waiting >= least_beside || left_ms <= 0) return false;
      if (!is_alarm_set) {
        is_alarm_set = true;
        setTimeout(() => {
          is_alarm_set = false;
          goOn();
        }, left_ms);
      }
      return true;
    },
  };
};

export const createBatcher = <D, V>(options: BatcherOptions<D, V>): Batcher<D, V> => {
  const { key, lanes, queue, least_beside, keys_together } = options;
  const sizes = sizesOf(options);
  let waiting: Entry<D, V>[] = [];
  let under_way: readonly Keys[] = [];
  let scheduled = false;
  let idle: (() => void)[] = [];
  const stats = { batches: 0, drafts: 0, waiting: 0 };

  const pace = makePace(options, () => pump(1));

  const canGo = (few: number): boolean =>
    under_way.length < lanes && waiting.length >= sizes.least(under_way.length, few);

  /** Beside at most `few` batches any number of drafts may go. */
  const pump = (few: 0 | 1): void => {
    while (canGo(few) && !pace.isTooSoon(waiting.length)) {
      const most = sizes.most(waiting.length, under_way.length);
      const taking = { most, keys_together, under_way };
      const { taken: entries, left, keys } = takeBatch(waiting, taking);
      if (entries.length < sizes.least(under_way.length, few)) break;
      waiting = left;
      under_way = [...under_way, keys];
      pace.begins(entries.length);
      stats.batches += 1;
      stats.drafts += entries.length;
      void runThrough(options, entries).then((settle) => {
        under_way = under_way.filter((other) => other !== keys);
        // Before the answers to this batch are made: Postgres works on the next one meanwhile.
        pump(1);
        settle();
        if (under_way.length === 0 && waiting.length === 0)
          for (const done of idle.splice(0)) done();
      });
    }
    stats.waiting = waiting.length;
  };

  const schedule = (): void => {
    if (scheduled || !canGo(0)) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      pump(0);
    });
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
        if (waiting.length === least_beside) pump(0);
        else schedule();
      }),
    drain: () =>
      new Promise((resolve) => {
        if (under_way.length === 0 && waiting.length === 0) resolve();
        else idle = [...idle, resolve];
      }),
  };
};
