export interface Window {
  /** The name in the headers, such as `key`, `ip` or `predictions`. */
  readonly name: string;
  /** The limit and the caller whose calls it counts, without the Redis prefix. */
  readonly key: string;
  readonly limit: number;
  readonly window_ms: number;
}

export interface Taken {
  readonly allowed: boolean;
  /** Index of the window that refused, or -1. */
  readonly refused: number;
  readonly retry_ms: number;
  /** Per window, in the given order: calls left, and ms until the oldest counted call expires. */
  readonly left: readonly number[];
  readonly reset_ms: readonly number[];
  /** When the call was counted, by the clock of the counter. Needed to give the call back. */
  readonly at_ms: number;
  /** True if counted in the memory of this process, not in Redis. */
  readonly is_local: boolean;
  /** The results per subject, if the subjects were counted separately. */
  readonly parts?: readonly Taken[];
}

/** Calls left in a window, and ms until its oldest counted call expires (0 if it has no calls). */
export interface Left {
  readonly left: number;
  readonly reset_ms: number;
}

/** When this many callers are stored, a sweep removes callers whose windows have expired. */
const first_sweep = 100_000;

/**
 * Counts windows in the memory of one process. `share` is the number of processes among which the
 * limit is divided. The tests compare the counts in Redis with these.
 */
export const makeLocalWindows = (share: number) => {
  const lists = new Map<string, { readonly list: number[]; readonly end: number }>();
  let sweep_at = first_sweep;
  const sweep = (now: number): void => {
    for (const [key, { end }] of lists) if (end <= now) lists.delete(key);
    sweep_at = Math.max(first_sweep, 2 * lists.size);
  };
  const read = (windows: readonly Window[], now: number) =>
    windows.map(({ key, limit, window_ms }) => {
      const list = lists.get(key)?.list ?? [];
      while (list.length > 0 && (list[0] as number) <= now - window_ms) list.shift();
      return { key, list, window_ms, limit: Math.max(1, Math.floor(limit / share)) };
    });
  type Counted = ReturnType<typeof read>[number];
  const leftOf = ({ list, limit }: Counted): number => Math.max(0, limit - list.length);
  const resetOf = ({ list, window_ms }: Counted, now: number, empty: number): number =>
    list.length > 0 ? (list[0] as number) + window_ms - now : empty;

  return {
    look: (windows: readonly Window[], now: number = Date.now()): readonly Left[] =>
      read(windows, now).map((one) => ({ left: leftOf(one), reset_ms: resetOf(one, now, 0) })),
    take(windows: readonly Window[], now: number = Date.now()): Taken {
      if (lists.size >= sweep_at) sweep(now);
      const counted = read(windows, now);
      const waits = counted.map(({ list, limit, window_ms }) =>
        list.length < limit ? 0 : (list[list.length - limit] as number) + window_ms - now,
      );
      const retry_ms = Math.max(0, ...waits);
      for (const { key, list, window_ms } of retry_ms === 0 ? counted : []) {
        list.push(now);
        lists.set(key, { list, end: now + window_ms });
      }
      return {
        allowed: retry_ms === 0,
        refused: retry_ms === 0 ? -1 : waits.indexOf(retry_ms),
        retry_ms,
        left: counted.map(leftOf),
        reset_ms: counted.map((one) => resetOf(one, now, one.window_ms)),
        at_ms: now,
        is_local: true,
      };
    },
    giveBack(windows: readonly Window[], { at_ms }: Pick<Taken, 'at_ms'>): void {
      for (const { key } of windows) {
        const list = lists.get(key)?.list ?? [];
        const at = list.lastIndexOf(at_ms);
        if (at !== -1) list.splice(at, 1);
      }
    },
    size: () => lists.size,
  };
};
