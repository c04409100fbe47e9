import type { Db, Tx } from '../../db/client.js';
import type { PointsRule } from '../points/index.js';
import type { Stated } from '../predictions/index.js';
import type { Decision } from './rules.js';
import type { ResolutionWire } from './schema.js';

/** Decisions about questions, how far the job is with each, and what a receipt is made from. */

/** As on the wire; times become texts when they are written as JSON. */
export type ResolutionRow = Omit<ResolutionWire, 'created_at' | 'finished_at'> & {
  readonly created_at: Date;
  readonly finished_at: Date | null;
};

const columns = (db: Db) => db`
  question_id, revision, kind, outcome, correct_options, note as resolution_note, evidence_urls,
  decided_by, state, total, done, created_at, finished_at`;

export const readLatest = async (tx: Tx, question_id: string) => {
  const [row] = await tx<ResolutionRow[]>`
    select ${columns(tx)}
    from resolutions
    where question_id = ${question_id}
    order by revision desc
    limit 1`;
  return row;
};

/** Holds the question against other decisions and against predictions until the commit. */
export const lockQuestion = async (tx: Tx, id: string): Promise<boolean> => {
  const rows = await tx`select id from questions where id = ${id} for update`;
  return rows.length === 1;
};

/**
 * Stores a decision for the job. The question is locked and takes no predictions any more, so the
 * number of its predictions is final.
 */
export const insertResolution = async (
  tx: Tx,
  made: Decision & { question_id: string; revision: number; decided_by: string; at: Date },
): Promise<ResolutionRow> => {
  const [row] = await tx<ResolutionRow[]>`
    insert into resolutions (
      question_id, revision, kind, outcome, correct_options, note, evidence_urls, decided_by,
      state, total, created_at
    )
    select
      ${made.question_id}::uuid, ${made.revision}, ${made.kind}, ${made.outcome}::boolean,
      ${made.correct_options as string[] | null}::text[], ${made.resolution_note},
      ${made.evidence_urls as string[]}::text[], ${made.decided_by}, 'running', count(*),
      ${made.at}
    from predictions
    where question_id = ${made.question_id}
    returning ${columns(tx)}`;
  return row as ResolutionRow;
};

export interface ReceiptRow extends Stated, Pick<Decision, 'outcome' | 'correct_options'> {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly placed_at: Date;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly weight: number;
  readonly revision: number;
  /** Of the latest decision. */
  readonly points_rule: PointsRule | null;
  readonly is_resolved: boolean;
  readonly state: 'open' | 'pending' | 'settled' | 'voided';
}

export const readReceipt = async (db: Db, id: string): Promise<ReceiptRow | undefined> => {
  const [row] = await db<ReceiptRow[]>`
    select
      p.id, p.question_id, p.agent_id, p.prediction, p.probability, p.confidence,
      p.selected_option, p.probabilities, p.created_at as placed_at, q.question_type, q.options,
      q.weight, q.outcome, q.correct_options, q.revision, r.points_rule,
      q.status = 'resolved' as is_resolved,
      case
        when q.status in ('open', 'closed') then 'open'
        -- The job has been past this prediction with the latest decision.
        when not coalesce(r.state = 'done' or r.cursor_agent >= p.agent_id, false) then 'pending'
        when q.status = 'voided' then 'voided'
        else 'settled'
      end as state
    from predictions p
    join questions q on q.id = p.question_id
    left join resolutions r on r.question_id = q.id and r.revision = q.revision
    where p.id = ${id}`;
  return row;
};

/** The ledger's entries of a prediction, oldest first. None is older than the prediction. */
export const readEntries = (db: Db, { agent_id, id }: Pick<ReceiptRow, 'agent_id' | 'id'>) => db<
  { readonly id: string; reason: string; amount: number; created_at: Date }[]
>`
  select id, reason, amount, created_at
  from ledger
  where agent_id = ${agent_id} and id >= ${id} and subject_id = ${id}
  order by id
  limit 500`;
