import type { Taken, Window } from './limits.js';

/**
 * What this process remembers of the lists in which Redis counts calls (`windows-n.lua`). A list
 * whose oldest call is young can only have grown since it was seen, so one more call on it is one
 * command, which answers with the length; without that it has to be read first. What is remembered
 * decides nothing: Redis compares it, and admits all calls of a batch or none of them
 * (`windows-all-n.lua`).
 */

export const keyOf = (prefix: string, { key }: { readonly key: string }): string =>
  `${prefix}:{limits}:${key}`;

/** A list as it was seen last. Times count from the first that was seen, so that they are short. */
class KnownList {
  /** How many calls are in it; 0 where that is not known. */
  length = 0;
  oldest_ms = 0;
  newest_ms = 0;
  /** Until when it refuses, as far as is known; 0 where it does not. */
  full_until_ms = 0;
  /** In the batch under way: its calls, the lowest of their limits, and the window. */
  calls = 0;
  limit = 0;
  window_ms = 0;

  constructor(readonly key: string) {}

  /** One more call; true for the first of a batch. */
  enter({ limit, window_ms }: Window): boolean {
    this.calls += 1;
    if (this.calls > 1) {
      if (limit < this.limit) this.limit = limit;
      return false;
    }
    this.limit = limit;
    this.window_ms = window_ms;
    return true;
  }

  isSure(until_ms: number): boolean {
    const { calls, length, limit, oldest_ms, window_ms } = this;
    return calls === 1 && length > 0 && length < limit && oldest_ms + window_ms > until_ms;
  }

  forget(): void {
    this.length = 0;
    this.calls = 0;
  }
}

interface Clock {
  /** The time of Redis that is 0 here, and what is added to that of this process. */
  zero_ms: number;
  ahead_ms: number;
}

export interface Asking {
  readonly windows: readonly Window[];
}

/** Calls that are asked for together. */
export interface KnownBatch {
  /** One of them is hardly admitted, and so they are not all. */
  readonly is_doubtful: boolean;
  /** As `windows-all-n.lua` takes it. */
  readonly packed: { readonly keys: readonly string[]; readonly args: readonly number[] };
  /** What became of them, in their order; null where none was admitted. */
  read(text: string): readonly Taken[] | null;
  /** Nothing is known of these lists any more. */
  forget(): void;
}

export interface KnownLists {
  /** One batch at a time: until it is read or forgotten. */
  open(batch: readonly Asking[]): KnownBatch;
  /** A call was judged by itself, or given back. */
  forget(windows: readonly Window[], taken?: Taken): void;
}

/** More lists than this are not remembered: all are read again. */
const most_lists = 50_000;
/** What may be old so soon is read; the clock of Redis is known better than that. */
const margin_ms = 250;

/** Lists that are sure, which Redis only compares, and those that it reads. */
interface Sorted {
  readonly sure: readonly KnownList[];
  readonly others: readonly KnownList[];
}

type Packed = KnownBatch['packed'];

const pack = (prefix: string, { zero_ms }: Clock, { sure, others }: Sorted): Packed => {
  let until_ms = Number.MAX_SAFE_INTEGER - zero_ms;
  let newest_ms = -zero_ms;
  const keys: string[] = [];
  const args = [sure.length, 0, 0];
  for (const list of sure) {
    until_ms = Math.min(until_ms, list.oldest_ms + list.window_ms);
    newest_ms = Math.max(newest_ms, list.newest_ms);
    keys.push(keyOf(prefix, list));
    args.push(list.length + 1, list.limit);
  }
  args[1] = until_ms + zero_ms;
  args[2] = newest_ms + zero_ms;
  for (const list of others) {
    keys.push(keyOf(prefix, list));
    args.push(list.calls, list.limit, list.window_ms);
  }
  return { keys, args };
};

/** Enters what Redis says of the lists before the calls; the time of the calls, and its own. */
const learn = (text: string, clock: Clock, { sure, others }: Sorted, { args }: Packed) => {
  const numbers = text.split(',').map(Number);
  const [at_ms = 0, redis_ms = 0, longer = 0] = numbers;
  if (clock.zero_ms === 0) clock.zero_ms = redis_ms;
  const now_ms = redis_ms - clock.zero_ms;
  clock.ahead_ms = now_ms - performance.now();
  sure.forEach((list, n) => {
    list.length = (args[3 + 2 * n] ?? 0) - 1;
    list.newest_ms = at_ms - clock.zero_ms;
  });
  let from = 3;
  for (const end = from + 2 * longer; from < end; from += 2) {
    const list = sure[(numbers[from] ?? 0) - 1];
    if (list !== undefined) list.length = (numbers[from + 1] ?? 0) - 1;
  }
  for (const list of others) {
    list.length = numbers[from] ?? 0;
    list.oldest_ms = now_ms - (numbers[from + 1] ?? 0);
    list.newest_ms = at_ms - clock.zero_ms;
    from += 2;
  }
  return { at_ms, now_ms };
};

/** Enters one call; what its caller is told. */
const admit = (
  windows: readonly Window[],
  lists: readonly KnownList[],
  { at_ms, now_ms }: ReturnType<typeof learn>,
): Taken => {
  const left: number[] = [];
  const reset_ms: number[] = [];
  for (let w = 0; w < windows.length; w += 1) {
    const list = lists[w] as KnownList;
    const { limit, window_ms } = windows[w] as Window;
    list.length += 1;
    list.calls = 0;
    left.push(Math.max(limit - list.length, 0));
    reset_ms.push(list.oldest_ms + window_ms - now_ms);
  }
  return { allowed: true, refused: -1, retry_ms: 0, left, reset_ms, at_ms, is_local: false };
};

export const createKnownLists = (prefix: string): KnownLists => {
  const known = new Map<string, KnownList>();
  const clock: Clock = { zero_ms: 0, ahead_ms: 0 };
  const nowMs = (): number => performance.now() + clock.ahead_ms;

  const listOf = ({ key }: Window): KnownList => {
    let list = known.get(key);
    if (list === undefined) {
      list = new KnownList(key);
      known.set(key, list);
    }
    return list;
  };

  return {
    open(batch) {
      if (known.size >= most_lists) known.clear();
      const now_ms = nowMs();
      const used: KnownList[] = [];
      const rows = batch.map(({ windows }) =>
        windows.map((window) => {
          const list = listOf(window);
          if (list.enter(window)) used.push(list);
          return list;
        }),
      );
      const sorted: { sure: KnownList[]; others: KnownList[] } = { sure: [], others: [] };
      for (const list of used) {
        (list.isSure(now_ms + margin_ms) ? sorted.sure : sorted.others).push(list);
      }
      const packed = pack(prefix, clock, sorted);
      return {
        is_doubtful: used.some(
          ({ full_until_ms }) => full_until_ms !== 0 && full_until_ms > now_ms,
        ),
        packed,
        read(text) {
          if (text === '') return null;
          const times = learn(text, clock, sorted, packed);
          return batch.map(({ windows }, n) => admit(windows, rows[n] as KnownList[], times));
        },
        forget() {
          for (const list of used) list.forget();
        },
      };
    },
    forget(windows, taken) {
      for (const [w, window] of windows.entries()) {
        const list = listOf(window);
        list.length = 0;
        if (taken?.refused === w) list.full_until_ms = nowMs() + taken.retry_ms - margin_ms;
      }
    },
  };
};
