import type { Sql, Tx } from './client.js';

/** Tables that are range-partitioned by the day, in UTC, with a partition for all other days. */

interface DailyTable {
  readonly table: string;
  /** A date or a time. */
  readonly column: string;
}

const lock = 7_366_143;

/** Makes the partition of one day, `YYYYMMDD`. */
export const makeDay = async (tx: Tx, table: string, day: string): Promise<void> => {
  if (!/^[a-z_]+ [0-9]{8}$/.test(`${table} ${day}`)) throw new Error(`${table}: no day ${day}`);
  await tx.unsafe(`
    create table ${table}_${day} partition of ${table}
    for values from ('${day}') to (date '${day}' + 1)`);
};

/** Makes the partitions of today and the next days, so that no day falls into the default one. */
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

/** Drops the partitions of days that ended more than so many days ago; returns their names. */
export const dropDays = async (
  sql: Sql,
  table: string,
  days_kept: number,
): Promise<readonly string[]> =>
  sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${lock})`;
    const old = await tx<{ name: string }[]>`
      select c.relname as name
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      where i.inhparent = ${table}::regclass
        and c.relname ~ '_[0-9]{8}$'
        and right(c.relname, 8) < to_char(
          (now() at time zone 'UTC') - make_interval(days => ${days_kept}::integer),
          'YYYYMMDD'
        )`;
    for (const { name } of old) await tx.unsafe(`drop table ${name}`);
    return old.map(({ name }) => name);
  });
