import type { Tx } from '../../src/db/client.js';
import { until } from './until.js';

/** Waits until another session in the transaction's database waits for a lock. */
export const untilLocked = (what: string, tx: Tx): Promise<unknown> =>
  until(what, async () => {
    // Without this, a transaction always sees the statistics of its first look.
    await tx`select pg_stat_clear_snapshot()`;
    const waiting = await tx`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length > 0;
  });
