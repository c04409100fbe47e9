import type { Db, Sql, Tx } from './client.js';

/** Tables that are range-partitioned by UTC day, with a default partition for all other days. */

interface DailyTable {
  readonly table: string;
  /** The column that decides the partition: a date or a time. */
  readonly column: string;
}

const lock = 7_366_143;

/** Makes the partition of one day (`YYYYMMDD`). */
export const makeDay = async (tx: Tx, table: string, day: string): Promise<void> => {
  if (!/^[a-z_]+ [0-9]{8}$/.test(`${table} ${day}`)) throw new Error(`${table}: no day ${day}`);
  await tx.unsafe(`
    create table ${table}_${day} partition of ${table}
    for values from ('${day}') to (date '${day}' + 1)`);
};

/** Makes the partitions of today and the next days, so that the default one stays empty. */
export const ensureDays = async (
  sql: Sql,
  { table, column }: DailyTable,
  days_ahead: number,
): Promise<void> => {
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${lock})`;
    const days = await tx<{ day: string }[]>`
      select to_char(d, 'YYYYMMDD') as day
      from generate_series(
        (now() at time zone 'UTC')::date,
        (now() at time zone 'UTC')::date + ${days_ahead}::integer,
        interval '1 day'
      ) d
      where to_regclass(${table} || to_char(d, '_YYYYMMDD')) is null
        and not exists (
          select
          from ${tx(`${table}_default`)} e
          where e.${tx(column)} >= d::date and e.${tx(column)} < d::date + 1
        )`;
    for (const { day } of days) await makeDay(tx, table, day);
  });
};

/** Lists days (`YYYYMMDD`) whose partition ended more than `days_kept` days ago, oldest first. */
export const listOldDays = async (
  db: Db,
  table: string,
  days_kept: number,
): Promise<readonly string[]> => {
  const rows = await db<{ day: string }[]>`
    select right(c.relname, 8) as day
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass
      and c.relname ~ '_[0-9]{8}$'
      and right(c.relname, 8) < to_char(
        (now() at time zone 'UTC') - make_interval(days => ${days_kept}::integer),
        'YYYYMMDD'
      )
    order by 1`;
  return rows.map(({ day }) => day);
};

/** For how long, at most, one try makes other statements wait. */
const lock_ms = 200;
const lock_not_available = '55P03';

/**
 * Drops one day's partition if `isOver` returns true; nobody can write to it during that call.
 * Returns false if the caller must try again later. Dropping locks the whole table for a moment. If
 * a backup holds a lock on it, the try ends after `lock_ms`, so that writers do not queue up.
 * Postgres refuses `detach concurrently` if there is a default partition.
 */
export const dropDay = async (
  sql: Sql,
  table: string,
  { day, isOver }: { readonly day: string; readonly isOver: (tx: Tx, name: string) => unknown },
): Promise<boolean> => {
  const name = `${table}_${day}`;
  if (!/^[a-z_]+_[0-9]{8}$/.test(name)) throw new Error(`${table}: no day ${day}`);
  const drop = sql.begin({ statement_ms: 60_000 }, async (tx) => {
    await tx`select set_config('lock_timeout', ${`${lock_ms}ms`}, true)`;
    await tx.unsafe(`lock table ${name} in share mode`);
    if (!(await isOver(tx, name))) return false;
    await tx.unsafe(`drop table ${name}`);
    return true;
  });
  return drop.catch((error: { readonly code?: string }) => {
    if (error.code === lock_not_available) return false;
    throw error;
  });
};
