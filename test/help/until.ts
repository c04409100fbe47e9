import os from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

type Nothing = false | null | undefined | 0 | '';

/**
 * Calls `look` until it finds something, and returns that. Throws if nothing is found in time. Use
 * a larger `every_ms` if a look is expensive.
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

/** Calls `find` until it finds nothing. If the time is up first, returns its last findings. */
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
 * Time limit for work that takes `ms` on idle cores. On a busy machine, the limit grows in
 * proportion to the load.
 */
export const allow = (ms: number): number =>
  Math.ceil(ms * Math.max(1, (os.loadavg()[0] ?? 0) / os.availableParallelism()));
