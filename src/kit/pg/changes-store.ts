import type { Db } from './client.js';

export interface Changed {
  readonly id: string;
  /** The number of the transaction. */
  readonly changed_in: string;
}

/**
 * Rows that have changed since the last call, of a table whose trigger notes in `changed_in` which
 * transaction changed a row last (`note_change`). A transaction that was under way then has a
 * number that is not below `next`, which is to be asked with the next time: so nothing is missed
 * however long it took, and meanwhile the same ones are told again. The first call (null) tells
 * those that changed before it and that the second will tell again. Numbers that this server has
 * not reached came with the rows from another one, and say nothing.
 */
export const readChanges = async (
  db: Db,
  table: string,
  since: string | null,
): Promise<{ readonly changed: readonly Changed[]; readonly next: string }> => {
  const rows = await db<{ next: string; id: string | null; changed_in: string | null }[]>`
    select pg_snapshot_xmin(now.seen)::text as next, r.id, r.changed_in::text as changed_in
    from (select pg_current_snapshot() as seen) now
    left join ${db(table)} r
      on r.changed_in >= coalesce(${since}::xid8, pg_snapshot_xmin(now.seen))
      and r.changed_in < pg_snapshot_xmax(now.seen)`;
  const changed = rows.filter((row): row is typeof row & Changed => row.id !== null);
  return { changed, next: rows[0]?.next ?? '0' };
};
