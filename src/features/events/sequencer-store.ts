import type { Db, Tx } from '../../db/client.js';

/** Sealed batches of a shard, and the order of all of them. See docs/shards.md. */

/** A batch without its events. */
export interface Descriptor {
  readonly shard: number;
  readonly batch: number;
  readonly count: number;
}

export interface Sequenced extends Descriptor {
  readonly first_offset: number;
}

export interface ShardEvent {
  readonly id: string;
  readonly event: string;
  readonly body: string;
}

/** Moves up to `most` committed events of a shard from its outbox into its next batch; how many. */
export const sealBatch = async (tx: Tx, most: number): Promise<number> => {
  const sealed = await tx`
    with taken as (
      delete from outbox
      where ctid = any (array(select ctid from outbox order by id limit ${most}))
      returning id, event, question_id, agent_id, audience_id, owner_id, body
    ),
    head as (
      update shard_head set batch = batch + 1 where exists (select from taken) returning batch
    ),
    noted as (
      insert into shard_batches (batch, count)
      select batch, (select count(*) from taken) from head
    )
    insert into shard_events
      (batch, n, id, event, question_id, agent_id, audience_id, owner_id, body)
    select
      head.batch, row_number() over (order by t.id) - 1, t.id, t.event, t.question_id, t.agent_id,
      t.audience_id, t.owner_id, t.body
    from taken t
    cross join head`;
  return sealed.count;
};

export const listBatches = (shard: Db, after: number, most: number) => shard<
  Omit<Descriptor, 'shard'>[]
>`
  select batch, count from shard_batches where batch > ${after} order by batch limit ${most}`;

/** The last batch of each shard that has its offsets; 0 where there is none. */
export const readCursors = async (db: Db, shards: number): Promise<readonly number[]> => {
  const rows = await db<{ batch: number }[]>`
    select coalesce((select max(batch) from sequence where shard = s), 0) as batch
    from generate_series(0, ${shards - 1}::integer) s
    order by s`;
  return rows.map(({ batch }) => batch);
};

/** The offset of the newest event, locked until the end of the transaction. */
export const lockHead = async (tx: Tx): Promise<number> => {
  const [row] = await tx<{ offset: number }[]>`select "offset" from sequence_head for update`;
  return row?.offset ?? 0;
};

export const addToSequence = async (
  tx: Tx,
  sequenced: readonly Sequenced[],
  head: number,
): Promise<void> => {
  await tx`
    insert into sequence (first_offset, shard, batch, count)
    select first_offset, shard, batch, count
    from json_to_recordset(${JSON.stringify(sequenced)}::text::json)
      as s (first_offset bigint, shard integer, batch bigint, count integer)`;
  await tx`update sequence_head set "offset" = ${head}`;
};

/** Descriptors of what comes after an offset, in order; the first may begin at or before it. */
export const readSequence = (db: Db, after: number, most: number) => db<Sequenced[]>`
  select first_offset, shard, batch, count
  from sequence
  where first_offset > coalesce(
    (
      select max(first_offset) - 1 from sequence
      where first_offset <= ${after} and first_offset + count - 1 > ${after}
    ),
    ${after}
  )
  order by first_offset
  limit ${most}`;

export const readBatch = (shard: Db, batch: number) => shard<ShardEvent[]>`
  select id, event, body from shard_events where batch = ${batch} order by n`;
