import type { Left, Taken, Window } from './limits.js';

/** So many callers are remembered before those who were not seen for a window are looked for. */
const first_sweep = 100_000;

/** Takes out the last entry of this value, if there is one. */
const dropLast = (list: number[], value: number): void => {
  const at = list.lastIndexOf(value);
  if (at !== -1) list.splice(at, 1);
};

const dropEnded = (lists: Map<string, number[]>, ends: Map<string, number>, now: number): void => {
  for (const [key, end] of ends) {
    if (end > now) continue;
    ends.delete(key);
    lists.delete(key);
  }
};

/**
 * The same rule in the memory of one process, which is one of `share` that count for themselves;
 * also what the tests compare Redis with.
 */
export const makeLocalWindows = (share: number) => {
  const lists = new Map<string, number[]>();
  const ends = new Map<string, number>();
  let sweep_at = first_sweep;
  const limitOf = (window: Window): number => Math.max(1, Math.floor(window.limit / share));
  const trim = (window: Window, now: number): number[] => {
    const list = lists.get(window.key) ?? [];
    let gone = 0;
    while (gone < list.length && (list[gone] as number) <= now - window.window_ms) gone += 1;
    list.splice(0, gone);
    return list;
  };
  const sweep = (now: number): void => {
    dropEnded(lists, ends, now);
    sweep_at = Math.max(first_sweep, 2 * lists.size);
  };
  const look = (windows: readonly Window[], now: number = Date.now()): readonly Left[] =>
    windows.map((window) => {
      const list = trim(window, now);
      const left = Math.max(0, limitOf(window) - list.length);
      return { left, reset_ms: list.length > 0 ? (list[0] as number) + window.window_ms - now : 0 };
    });
  const take = (windows: readonly Window[], now: number = Date.now()): Taken => {
    if (lists.size >= sweep_at) sweep(now);
    let refused = -1;
    let retry_ms = 0;
    const rows = windows.map((window, index) => {
      const list = trim(window, now);
      const limit = limitOf(window);
      if (list.length >= limit) {
        const wait = (list[list.length - limit] as number) + window.window_ms - now;
        if (wait > retry_ms) {
          refused = index;
          retry_ms = wait;
        }
      }
      return { list, limit, window };
    });
    if (refused === -1) {
      for (const { list, window } of rows) {
        list.push(now);
        lists.set(window.key, list);
        ends.set(window.key, now + window.window_ms);
      }
    }
    return {
      allowed: refused === -1,
      refused,
      retry_ms,
      left: rows.map(({ list, limit }) => Math.max(0, limit - list.length)),
      reset_ms: rows.map(({ list, window }) =>
        list.length > 0 ? (list[0] as number) + window.window_ms - now : window.window_ms,
      ),
      at_ms: now,
      is_local: true,
    };
  };
  const giveBack = (windows: readonly Window[], { at_ms }: Pick<Taken, 'at_ms'>): void => {
    for (const { key } of windows) dropLast(lists.get(key) ?? [], at_ms);
  };
  const clear = (): void => {
    lists.clear();
    ends.clear();
  };
  return { take, look, giveBack, clear, size: () => lists.size };
};
