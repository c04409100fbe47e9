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
