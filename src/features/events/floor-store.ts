import type { Db, Sql } from '../../db/client.js';
import { dropDay, listOldDays } from '../../db/partition-store.js';
import { readTotal } from '../../db/rows.js';

/**
 * The start of the log. `oldest` in the `log_head` row moves forward by a whole day at a time. From
 * then on, readers ignore the events before it. Those events are deleted later, when every process
 * knows the new value.
 */

/** Returns the offset of the oldest stored event, or the next offset if the log is empty. */
export const readOldest = async (db: Db): Promise<number> => {
  const [row] = await db<{ oldest: number }[]>`select oldest from log_head`;
  return row?.oldest ?? 1;
};

/** A day of events, from `first` to just before `next`. */
export interface OldestStep {
  /** `YYYYMMDD`. */
  readonly day: string;
  readonly first: number;
  readonly next: number;
}

/** Makes `next` the oldest offset; false if another process has already done so. */
export const moveOldest = async (db: Db, { first, next }: OldestStep): Promise<boolean> => {
  const rows = await db`
    update log_head set oldest = ${next}, oldest_at = now() where oldest = ${first} returning oldest`;
  return rows.length === 1;
};

const max_deleted = 5_000;

/**
 * Drops the events before `oldest`, once `oldest` has been unchanged for `settle_ms`. Returns the
 * dropped days. If the clock was turned back, a day may also hold later events. It then stays until
 * these are old too. Events in the default partition are deleted row by row.
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
  for (let count = max_deleted; count === max_deleted; ) {
    ({ count } = await sql`
      delete from events_default
      where ctid = any (array(
        select ctid from events_default where "offset" < ${floor.oldest} limit ${max_deleted}
      ))`);
  }
  return dropped;
};
