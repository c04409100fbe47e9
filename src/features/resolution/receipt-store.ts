import type { Db } from '../../kit/pg/client.js';
import type { PointsRule } from '../points/index.js';
import type { Stated } from '../predictions/index.js';

/** Everything that a receipt of one prediction is made from. */

export interface ReceiptRow extends Stated {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly created_at: Date;
  readonly status: 'open' | 'closed' | 'resolved' | 'voided';
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly weight: number;
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly revision: number;
  /** Of the latest decision. */
  readonly points_rule: PointsRule | null;
  /** The job has been past this prediction with the latest decision. */
  readonly is_settled: boolean | null;
}

export const readReceipt = async (db: Db, id: string): Promise<ReceiptRow | undefined> => {
  const [row] = await db<ReceiptRow[]>`
    select
      p.id, p.question_id, p.agent_id, p.prediction, p.probability, p.confidence,
      p.selected_option, p.probabilities, p.created_at, q.status, q.question_type,
      q.options, q.weight, q.outcome, q.correct_options, q.revision,
      r.points_rule, r.state = 'done' or r.cursor_agent >= p.agent_id as is_settled
    from predictions p
    join questions q on q.id = p.question_id
    left join resolutions r on r.question_id = q.id and r.revision = q.revision
    where p.id = ${id}`;
  return row;
};

export interface StoredScore {
  readonly forecast: number;
  readonly brier: number;
  readonly log_score: number;
  readonly baseline: number;
  readonly relative: number | null;
  readonly correct: boolean;
}

export const readScore = async (
  db: Db,
  question_id: string,
  agent_id: string,
): Promise<StoredScore | undefined> => {
  const [row] = await db<StoredScore[]>`
    select forecast, brier, log_score, baseline, relative, correct
    from scores
    where question_id = ${question_id} and agent_id = ${agent_id}`;
  return row;
};

export interface ReceiptEntry {
  readonly id: string;
  readonly reason: string;
  readonly amount: number;
  readonly created_at: Date;
}

/** The entries of a prediction, oldest first. None is older than the prediction and its id. */
export const readEntries = (
  db: Db,
  { agent_id, id }: Pick<ReceiptRow, 'agent_id' | 'id'>,
): PromiseLike<ReceiptEntry[]> =>
  db<ReceiptEntry[]>`
    select id, reason, amount, created_at
    from ledger
    where agent_id = ${agent_id} and id >= ${id} and subject_id = ${id}
    order by id
    limit 500`;
