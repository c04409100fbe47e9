import { randomBytes } from 'node:crypto';
import { CannotStart } from '../kit/service.js';
import type { Tx } from './client.js';

/**
 * Handles databases with the 45 migrations that came before `sql/0001_schema.sql`. If the schema
 * equals that file, the database is adopted: its list of migrations then contains this file alone.
 * Other databases are refused, and nothing in them changes.
 */

const earlier = { first: '0001_foundation.sql', last: '0045_consumers.sql', count: 45 } as const;
/** The last commit of this repository that contains these migrations. */
const commit = 'dd20781e';

/** Tables from the earlier migrations that nothing uses any more. */
const leftovers = 'shard_head, shard_batches, shard_events, sequence_head, sequence';

/** Returns true if a list of migrations starts with the earlier ones. */
export const isEarlier = ([first]: readonly string[]): boolean => first === earlier.first;

/** Throws unless all earlier migrations have run. */
export const checkComplete = (names: readonly string[], what: 'database' | 'backup'): void => {
  if (names.at(-1) === earlier.last) return;
  const way = {
    database: 'start it once, then start this program again',
    backup: 'restore the backup with it, start it once, then make another backup',
  };
  throw new CannotStart(
    `The ${what} has ${names.length} of the ${earlier.count} migrations of an earlier program. ` +
      `Check out commit ${commit}, ${way[what]}.`,
  );
};

/** Throws unless `names` has all earlier migrations and the database matches `schema`. */
export const checkEarlier = async (
  tx: Tx,
  names: readonly string[],
  schema: string,
): Promise<void> => {
  checkComplete(names, 'database');
  const difference = await findDifference(tx, schema);
  if (difference === null) return;
  throw new CannotStart(
    `The database does not have the schema of this program (${difference}). Check out commit ` +
      `${commit}, make a backup with it, and restore it into an empty database with this program.`,
  );
};

/** Records `name` as the only migration that the database has had. Call `checkEarlier` first. */
export const adopt = async (tx: Tx, name: string): Promise<void> => {
  await tx.unsafe(`drop table if exists ${leftovers}`);
  await tx`delete from migrations`;
  await tx`insert into migrations (number, name) values (1, ${name})`;
};

const insufficient_privilege = '42501';

/**
 * Returns the first difference between the current schema and the one that the statements in
 * `schema` create, or null. Tables, views and functions of other programs are ignored.
 */
const findDifference = async (tx: Tx, schema: string): Promise<string | null> => {
  const found = await describeSchema(tx);
  const empty = `wanted_${randomBytes(6).toString('hex')}`;
  await tx`savepoint wanted`;
  await tx`create schema ${tx(empty)}`.catch((error: { readonly code?: string }) => {
    if (error.code !== insufficient_privilege) throw error;
    throw new CannotStart(
      'This user may not create the schema that the database is compared with. Grant the ' +
        'right (grant create on database), then start again.',
    );
  });
  await tx`set local search_path to ${tx(empty)}`;
  await tx.unsafe(schema);
  const wanted = await describeSchema(tx);
  await tx`rollback to savepoint wanted`;

  const is = new Map(found.map((part) => [part.name, part.is]));
  for (const part of wanted) {
    if (!is.has(part.name)) return `${part.name} is missing`;
    if (is.get(part.name) !== part.is) return `${part.name} differs`;
  }
  const own = new Set(wanted.map(({ of }) => of));
  const names = new Set(wanted.map(({ name }) => name));
  const other = found.find(({ of, name }) => own.has(of) && !names.has(name));
  return other === undefined ? null : `${other.name} is unexpected`;
};

interface Part {
  /** The table, view or function to which the part belongs. */
  readonly of: string;
  readonly name: string;
  readonly is: string;
}

/**
 * Describes the current schema from the catalogs, without the name of the schema. Daily partitions,
 * storage settings and the order of columns are left out, because they change no meaning.
 * Constraints of type `n` are left out too, because in Postgres 18 they repeat "not null".
 */
const describeSchema = (tx: Tx) => tx<Part[]>`
  with relations as (
    select c.oid, c.relname::text as name, c.relkind::text as kind, c.relpartbound
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace
      and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      and not (c.relispartition and c.relname ~ '_[0-9]{8}$')
  )
  select name as of, 1 as place,
    case kind when 'v' then 'view ' when 'S' then 'sequence ' else 'table ' end || name as name,
    concat_ws(
      ' ', kind, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid),
      case kind when 'v' then pg_get_viewdef(oid, true) end
    ) as is
  from relations
  union all
  select name, 2, 'column ' || name || '.' || attname,
    concat_ws(
      ' ', format_type(atttypid, atttypmod), attcollation::regcollation,
      case when attnotnull then 'not null' end, attidentity::text, attgenerated::text,
      pg_get_expr(adbin, adrelid, true)
    )
  from relations
  join pg_attribute on attrelid = relations.oid and attnum > 0 and not attisdropped
  left join pg_attrdef on adrelid = attrelid and adnum = attnum
  union all
  select name, 3, 'constraint ' || conname || ' of ' || name, pg_get_constraintdef(c.oid, true)
  from relations
  join pg_constraint c on c.conrelid = relations.oid
  where c.contype <> 'n'
  union all
  select name, 4, 'index ' || indexrelid::regclass,
    concat_ws(' ', pg_get_indexdef(indexrelid, 0, true), indisvalid)
  from relations
  join pg_index on indrelid = relations.oid
  union all
  select name, 5, 'trigger ' || tgname || ' of ' || name,
    concat_ws(' ', pg_get_triggerdef(t.oid, true), tgenabled::text)
  from relations
  join pg_trigger t on t.tgrelid = relations.oid
  where not tgisinternal
  union all
  select proname, 6, 'function ' || p.oid::regprocedure,
    concat_ws(
      ' ', pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), lanname,
      prokind::text, provolatile::text, proparallel::text, proisstrict, prosecdef, proconfig,
      pg_get_function_sqlbody(p.oid), prosrc
    )
  from pg_proc p
  join pg_language l on l.oid = p.prolang
  where p.pronamespace = current_schema()::regnamespace
  order by of, place, name`;
