import type { Db } from '../../kit/pg/client.js';

/**
 * The moment an export stands for. Ids are made in the order of time and a little before their
 * commit, so what was recorded before a moment is final once every transaction that was under way
 * then is over.
 */

/** The number of the next transaction: those under way are below it. */
export const readNextTransaction = async (db: Db): Promise<string> => {
  const [row] = await db<{ next: string }[]>`
    select pg_snapshot_xmax(pg_current_snapshot())::text as next`;
  return row?.next ?? '0';
};

/** Whether every transaction below a number is over. */
export const areOver = async (db: Db, below: string): Promise<boolean> => {
  const [row] = await db<{ over: boolean }[]>`
    select pg_snapshot_xmin(pg_current_snapshot()) >= ${below}::xid8 as over`;
  return row?.over === true;
};

/** The newest event that was recorded up to a moment; 0 for none. */
export const readOffsetAt = async (db: Db, at: Date): Promise<number> => {
  const [row] = await db<{ offset: number }[]>`
    select "offset"
    from events
    where recorded_at <= ${at} and recorded_on <= ${at}::timestamptz::date
    order by "offset" desc
    limit 1`;
  return row?.offset ?? 0;
};
