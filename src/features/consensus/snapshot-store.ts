import type { Db, Tx } from '../../db/client.js';
import type { PageAsk } from '../../http/page.js';
import type { SnapshotReason } from './history-schema.js';
import type { Consensus, QuestionShape } from './rules.js';

/** Snapshots of the consensus, and how far they have been taken. */

/** How far the log has been looked through; undefined while another timer is at it. */
export const lockCursor = async (tx: Tx): Promise<number | undefined> => {
  const [row] = await tx<{ offset: number }[]>`
    select "offset" from snapshot_cursor for update skip locked`;
  return row?.offset;
};

export const moveCursor = async (tx: Tx, offset: number): Promise<void> => {
  await tx`update snapshot_cursor set "offset" = ${offset}`;
};

/** A closing or a resolution of the log, with the question as it is now. */
export interface Ending extends QuestionShape {
  readonly offset: number;
  readonly reason: 'closed' | 'resolved';
  readonly moment: Date;
}

/** Those of a stretch of the log, in its order. */
export const readEndings = (
  tx: Tx,
  { after, until, most }: { readonly after: number; readonly until: number; readonly most: number },
) => tx<Ending[]>`
  select e.*, q.id, q.question_type, q.options
  from (
    select
      "offset",
      question_id,
      split_part(event, '.', 2) as reason,
      coalesce(
        body::json -> 'data' ->> 'resolved_at',
        body::json -> 'data' ->> 'closed_at'
      )::timestamptz as moment
    from events
    where "offset" > ${after}
      and "offset" <= ${until}
      and event in ('question.closed', 'question.resolved')
  ) e
  join questions q on q.id = e.question_id
  order by e."offset"
  limit ${most}`;

/** Questions that moved since their latest snapshot and have none of this hour, by their ids. */
export const listMoved = (
  tx: Tx,
  { hour, after, most }: { readonly hour: Date; readonly after: string; readonly most: number },
) => tx<QuestionShape[]>`
  select q.id, q.question_type, q.options
  from question_counts c
  join questions q on q.id = c.question_id
  where c.question_id > ${after}
    and c.prediction_count > 0
    and not exists (
      select
      from consensus_snapshots s
      where s.question_id = c.question_id
        and (s."offset" >= c.prediction_offset or s.moment = ${hour} and s.reason = 'hourly')
    )
  order by c.question_id
  limit ${most}`;

export interface Snapshot {
  readonly reason: SnapshotReason;
  readonly moment: Date;
  readonly taken_at: Date;
}

/** How the JSON of a snapshot is written; see the migration of the column. */
const format = 2;

/** False when the moment has its snapshot already; one of an older format is written anew. */
export const putSnapshot = async (
  tx: Tx,
  { reason, moment, taken_at }: Snapshot,
  consensus: Consensus,
): Promise<boolean> => {
  const rows = await tx`
    insert into consensus_snapshots as s
      (question_id, moment, reason, taken_at, "offset", consensus, format)
    values (
      ${consensus.question_id}, ${moment}, ${reason}, ${taken_at}, ${consensus.offset},
      ${JSON.stringify(consensus)}::text::json, ${format}
    )
    on conflict (question_id, moment, reason) do update
    set consensus = excluded.consensus, format = excluded.format
    where s.format < excluded.format
    returning moment`;
  return rows.length === 1;
};

/** Those that an older program took, with their questions. */
export const listOutdated = (tx: Tx, most: number) => tx<
  (Snapshot & QuestionShape & { readonly offset: number })[]
>`
  select s.moment, s.reason, s.taken_at, s."offset", q.id, q.question_type, q.options
  from consensus_snapshots s
  join questions q on q.id = s.question_id
  where s.format < ${tx.unsafe(String(format))}
  limit ${most}`;

type SnapshotRow = Pick<Snapshot, 'taken_at' | 'reason'> & { readonly consensus: Consensus };

/** Newest first, one more than the page; those of an older format come once they are made anew. */
export const listSnapshots = (
  db: Db,
  question_id: string,
  { after, offset, limit }: PageAsk,
): Promise<SnapshotRow[]> => {
  const [taken_at = null, reason = null] = (after ?? []) as (string | null)[];
  return db<SnapshotRow[]>`
    select taken_at, reason, consensus
    from consensus_snapshots
    where question_id = ${question_id}
      and format = ${format}
      and (${taken_at}::timestamptz is null
        or (taken_at, reason) < (${taken_at}::timestamptz, ${reason}))
    order by taken_at desc, reason desc
    offset ${offset}
    limit ${limit + 1}`;
};

export const countSnapshots = async (db: Db, question_id: string): Promise<number> => {
  const [row] = await db<{ count: number }[]>`
    select count(*)::integer as count
    from consensus_snapshots
    where question_id = ${question_id} and format = ${format}`;
  return row?.count ?? 0;
};
