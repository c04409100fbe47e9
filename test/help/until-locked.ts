import type { Tx } from '../../src/kit/pg/client.js';
import { until } from './until.js';

/** Waits until somebody waits for a lock in the database of the transaction. */
export const untilLocked = (what: string, tx: Tx): Promise<unknown> =>
  until(what, async () => {
    const waiting = await tx`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length > 0;
  });
