import os from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

type Nothing = false | null | undefined | 0 | '';

/**
 * Looks until there is something and gives it; fails loudly when there is nothing in time. A look
 * that costs much is made less often.
 */
export const until = async <T>(
  what: string,
  look: () => T | Promise<T>,
  within_ms = 30_000,
  every_ms = 10,
): Promise<Exclude<T, Nothing>> => {
  const deadline = Date.now() + within_ms;
  for (;;) {
    const found = await look();
    if (found) return found as Exclude<T, Nothing>;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${within_ms} ms`);
    await wait(every_ms);
  }
};

/** Looks until there is nothing to find; what is found at the end. */
export const untilNone = async (
  find: () => Promise<readonly string[]>,
  within_ms: number,
): Promise<readonly string[]> => {
  let found: readonly string[] = [];
  const look = async (): Promise<boolean> => {
    found = await find().catch((error: unknown) => [`it cannot be looked at: ${error}`]);
    return found.length === 0;
  };
  await until('nothing is found', look, within_ms, 100).catch(() => undefined);
  return found;
};

/**
 * How long something may take that takes so long where cores are free: on a machine that has other
 * work, longer by as much as they are shared.
 */
export const allow = (ms: number): number =>
  Math.ceil(ms * Math.max(1, (os.loadavg()[0] ?? 0) / os.availableParallelism()));
