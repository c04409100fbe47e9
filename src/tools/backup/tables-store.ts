import type { Tx } from '../../db/client.js';
import { adoptEarlier, lockSchema, type Migration } from '../../db/migrate.js';

/** Reads the service's tables from the catalogue of Postgres, for backup and restore. */

export interface Table {
  readonly name: string;
  /** The stored columns, without generated ones. */
  readonly columns: readonly string[];
  /** The days (`YYYYMMDD`) that have their own partition. */
  readonly days: readonly string[];
}

/**
 * Lifts the time limits, because copying a whole table may take a long time. Also sets the format
 * of values, so that every server can read them.
 */
export const unboundStatements = async (tx: Tx): Promise<void> => {
  await tx.unsafe(`
    set local statement_timeout = 0;
    set local idle_in_transaction_session_timeout = 0;
    set local lock_timeout = '60s';
    set local datestyle = 'ISO';
    set local intervalstyle = 'postgres';
    set local bytea_output = 'hex';
    set local extra_float_digits = 1`);
};

/**
 * Returns all tables of the schema except the list of migrations, which is in the manifest. A table
 * comes before the tables that refer to it.
 */
export const readTables = async (
  tx: Tx,
): Promise<{ readonly tables: readonly Table[]; readonly migrations: readonly string[] }> => {
  const tables = await tx<Table[]>`
    select c.relname::text as name,
      array(
        select a.attname::text from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        order by a.attnum
      ) as columns,
      array(
        select right(p.relname, 8) from pg_inherits i join pg_class p on p.oid = i.inhrelid
        where i.inhparent = c.oid and p.relname ~ '_[0-9]{8}$' order by 1
      ) as days
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and c.relname <> 'migrations'
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
    order by (
      with recursive refers (oid, depth) as (
        select c.oid, 0
        union all
        select f.confrelid, r.depth + 1
        from refers r
        join pg_constraint f on f.conrelid = r.oid and f.contype = 'f' and f.confrelid <> r.oid
      )
      select max(depth) from refers
    ), 1`;
  const migrations = await tx<{ name: string }[]>`select name from migrations order by number`;
  return { tables, migrations: migrations.map(({ name }) => name) };
};

export const findOthers = async (tx: Tx): Promise<readonly string[]> => {
  const rows = await tx<{ name: string }[]>`
    select distinct application_name as name from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and application_name like 'prediction-forum%' order by 1`;
  return rows.map(({ name }) => name);
};

export const holdsContent = async (tx: Tx): Promise<boolean> => {
  const [row] = await tx<{ is_there: boolean }[]>`
    select to_regclass('agents') is not null as is_there`;
  if (row?.is_there !== true) return false;
  const [content] = await tx<{ found: boolean }[]>`
    select exists (select from agents) or exists (select from humans)
      or exists (select from questions) or exists (select from events) as found`;
  return content?.found === true;
};

const namesAfter = (pattern: RegExp, migrations: readonly Migration[]): string =>
  [
    ...new Set(
      migrations.flatMap(({ text }) => Array.from(text.matchAll(pattern), ([, name]) => name)),
    ),
  ].join(', ');

/** Drops every table and function that the migrations create, and nothing else. */
export const dropSchema = async (tx: Tx, migrations: readonly Migration[]): Promise<void> => {
  await lockSchema(tx);
  await unboundStatements(tx);
  await adoptEarlier(tx, migrations);
  const made = /(?:create table (?:if not exists )?|alter table \w+ rename to )(\w+)/g;
  const tables = namesAfter(made, migrations);
  const functions = namesAfter(/create (?:or replace )?function (\w+)/g, migrations);
  await tx.unsafe(`drop table if exists migrations, ${tables} cascade`);
  await tx.unsafe(`drop function if exists ${functions} cascade`);
};

/** Deletes the rows that the migrations inserted, because the backup has these rows too. */
export const emptyTables = async (tx: Tx, tables: readonly Table[]): Promise<void> => {
  for (const { name } of tables.toReversed()) {
    await tx.unsafe(`alter table "${name}" disable trigger user`);
    await tx.unsafe(`delete from "${name}"`);
  }
};

/** Compares the number of rows with the backup's, and enables the triggers again. */
export const finishTable = async (tx: Tx, { name }: Table, rows: number): Promise<void> => {
  const [row] = await tx.unsafe<{ found: number }[]>(
    `select count(*)::bigint as found from "${name}"`,
  );
  if (row?.found !== rows) throw new Error(`${name} has ${row?.found} rows instead of ${rows}.`);
  await tx.unsafe(`alter table "${name}" enable trigger user`);
};
