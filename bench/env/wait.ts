import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../../src/db/client.js';

/** What the service does after its answers belongs to the round: waits for it, returns seconds. */
export const waitUntilEmpty = async (
  sql: Sql,
  tables: readonly string[],
  longest_s = 60,
): Promise<number> => {
  const started_ms = performance.now();
  for (;;) {
    const looks = tables.map((table) => sql`select from ${sql(table)} limit 1`);
    const left = (await Promise.all(looks)).some((rows) => rows.length > 0);
    const waited_s = (performance.now() - started_ms) / 1_000;
    if (!left) return waited_s;
    if (waited_s > longest_s) {
      throw new Error(`Not everything in ${tables.join(' and ')} was done in ${longest_s} s.`);
    }
    await delay(50);
  }
};
