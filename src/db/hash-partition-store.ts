import type { Tx } from './client.js';

/**
 * The tables that grow with the forum. The column leads each key of theirs, and what is asked of
 * one question, agent or webhook names it: so they can be divided by its hash, here into partitions
 * (`DATABASE_PARTITIONS`) or by Citus over nodes.
 */
export const leading_columns = {
  ledger: 'agent_id',
  predictions: 'question_id',
  earlier_forecasts: 'question_id',
  scores: 'question_id',
  comments: 'question_id',
  votes: 'question_id',
  notifications: 'agent_id',
  consensus_snapshots: 'question_id',
  deliveries: 'webhook_id',
} as const;

interface Parts {
  readonly columns: string;
  readonly options: string;
  readonly keys: readonly string[];
  readonly indexes: readonly string[];
}

/** Makes them anew as so many hash partitions, with the rows and keys that they have; none for 0. */
export const partitionByHash = async (tx: Tx, partitions: number): Promise<void> => {
  if (partitions === 0) return;
  const views = await tx<{ name: string; text: string }[]>`
    select quote_ident(relname) as name, pg_get_viewdef(oid) as text from pg_class c
    where relkind = 'v' and relnamespace = current_schema()::regnamespace
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
    order by oid`;
  await tx.unsafe(`drop view ${views.map(({ name }) => name).join(', ')}`);
  for (const [table, column] of Object.entries(leading_columns)) {
    const [parts] = await tx<Parts[]>`
      select (
          select string_agg(quote_ident(attname), ', ') from pg_attribute
          where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
        ) as columns,
        coalesce('with (' || array_to_string(c.reloptions, ', ') || ')', '') as options,
        array(
          select format('alter table %I add constraint %I %s',
            ${table}::text, conname, pg_get_constraintdef(oid))
          from pg_constraint where conrelid = c.oid and contype in ('p', 'u')
        ) as keys,
        array(
          select pg_get_indexdef(indexrelid) from pg_index
          where indrelid = c.oid and not exists (
            select from pg_constraint where conindid = indexrelid
          )
        ) as indexes
      from pg_class c where c.oid = ${table}::regclass`;
    if (parts === undefined) throw new Error(`${table} is missing`);
    const each = Array.from(
      { length: partitions },
      (_, n) => `
        create table ${table}_${n} partition of ${table}
        for values with (modulus ${partitions}, remainder ${n}) ${parts.options}`,
    );
    const statements = [
      `alter table ${table} rename to ${table}_whole`,
      `create table ${table} (like ${table}_whole including all excluding indexes)
        partition by hash (${column})`,
      ...each,
      `insert into ${table} (${parts.columns}) select ${parts.columns} from ${table}_whole`,
      `drop table ${table}_whole`,
      ...parts.keys,
      ...parts.indexes,
    ];
    await tx.unsafe(statements.join(';\n'));
  }
  for (const { name, text } of views) await tx.unsafe(`create view ${name} as ${text}`);
};
