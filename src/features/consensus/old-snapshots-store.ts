import type { Tx } from '../../db/client.js';

/**
 * Deletes old hourly snapshots. Daily partitions would be easier to drop, but the table is sorted
 * by question, so that a page reads adjacent rows. The snapshots at the close and at resolutions
 * stay. So does a question's newest snapshot, because it shows when the consensus last changed.
 */

export interface SnapshotKey {
  readonly question_id: string;
  /** The time as Postgres writes it. */
  readonly moment: string;
  /** In UTC: `20260131T05`. */
  readonly hour: string;
}

/** Returns the oldest snapshots to delete. They stay locked until the transaction ends. */
export const lockOldHourly = (tx: Tx, days_kept: number, most: number) => tx<SnapshotKey[]>`
  select
    question_id, moment::text,
    to_char(moment at time zone 'UTC', 'YYYYMMDD"T"HH24') as hour
  from consensus_snapshots s
  where reason = 'hourly'
    and moment < now() - ${days_kept} * interval '1 day'
    and exists (
      select
      from consensus_snapshots n
      where n.question_id = s.question_id and n.taken_at > s.taken_at
    )
  order by s.moment, s.question_id
  limit ${most}
  for update of s skip locked`;

export const deleteHourly = async (tx: Tx, keys: readonly SnapshotKey[]): Promise<void> => {
  await tx`
    delete from consensus_snapshots s
    using json_to_recordset(${JSON.stringify(keys)}::text::json)
      as k (question_id uuid, moment timestamptz)
    where s.question_id = k.question_id and s.moment = k.moment and s.reason = 'hourly'`;
};
