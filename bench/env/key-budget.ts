import { setTimeout as delay } from 'node:timers/promises';

/**
 * Keeps a bench below a limit per key and minute: rounds wait rather than meet it. Only the limit
 * per address is raised for benches, because one machine makes all the load.
 */
export interface KeyBudget {
  /** Waits until every key may make so many requests. */
  reserve(per_key: number): Promise<void>;
  spend(per_key: number): void;
}

const window_ms = 61_000;

export const makeKeyBudget = (most_per_minute: number): KeyBudget => {
  let spent: { readonly at_ms: number; readonly per_key: number }[] = [];
  return {
    async reserve(per_key) {
      if (per_key > most_per_minute) throw new Error('One round alone would meet the limit.');
      for (;;) {
        spent = spent.filter(({ at_ms }) => at_ms > Date.now() - window_ms);
        const used = spent.reduce((sum, one) => sum + one.per_key, 0);
        if (used + per_key <= most_per_minute) return;
        await delay(250);
      }
    },
    spend: (per_key) => {
      spent.push({ at_ms: Date.now(), per_key });
    },
  };
};
