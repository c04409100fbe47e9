import type { Db, Sql } from '../../db/client.js';
import { dropDay, listOldDays } from '../../db/partition-store.js';
import { readTotal } from '../../db/rows.js';

/**
 * Where the log begins. `oldest` in the row of its head moves over a whole day at a time; readers
 * go by it from then on, and what lies before it is dropped some time later, when no process takes
 * it for kept any more.
 */

/** The offset of the oldest event that is kept; for an empty log, the one that comes next. */
export const readOldest = async (db: Db): Promise<number> => {
  const [row] = await db<{ oldest: number }[]>`select oldest from log_head`;
  return row?.oldest ?? 1;
};

/** A day of events from `first` to the one before `next`. */
export interface OldestStep {
  /** `YYYYMMDD`. */
  readonly day: string;
  readonly first: number;
  readonly next: number;
}

/** Says that events before `next` are no longer kept; false when another process has said it. */
export const moveOldest = async (db: Db, { first, next }: OldestStep): Promise<boolean> => {
  const rows = await db`
    update log_head set oldest = ${next}, oldest_at = now() where oldest = ${first} returning oldest`;
  return rows.length === 1;
};

const most_deleted = 5_000;

/**
 * Drops what lies before the oldest event, when that has stood for `settle_ms`; the days dropped. A
 * day whose clock was turned back may hold a later event, and stays until that is old too. Days
 * without a partition of their own are deleted by rows.
 */
export const dropBelowOldest = async (sql: Sql, settle_ms: number): Promise<readonly string[]> => {
  const [floor] = await sql<{ oldest: number; is_settled: boolean }[]>`
    select oldest, oldest_at < now() - ${settle_ms} * interval '1 millisecond' as is_settled
    from log_head`;
  if (floor === undefined || floor.oldest === 1 || !floor.is_settled) return [];
  const dropped: string[] = [];
  for (const day of await listOldDays(sql, 'events', 1)) {
    const isOver = async (tx: Db, name: string): Promise<boolean> => {
      const count = tx<{ total: number }[]>`
        select count(*)::integer as total
        from (select from ${tx(name)} where "offset" >= ${floor.oldest} limit 1) kept`;
      return (await readTotal(count)) === 0;
    };
    if (await dropDay(sql, 'events', { day, isOver })) dropped.push(day);
  }
  for (let count = most_deleted; count === most_deleted; ) {
    ({ count } = await sql`
      delete from events_default
      where ctid = any (array(
        select ctid from events_default where "offset" < ${floor.oldest} limit ${most_deleted}
      ))`);
  }
  return dropped;
};
