import type { Db, Tx } from '../../db/client.js';
import { firstRow, newestFirst, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import type { PointsRule } from '../points/rules.js';
import type { QuestionTimes } from '../points/time-weighting.js';
import type { QuestionRow } from '../questions/index.js';
import type { RangeColumns } from '../questions/range.js';
import type { Decision, Disputed, Filing } from './rules.js';
import type { DisputeStatus, DisputeWire, ResolutionWire } from './schema.js';
import { questionTimes, statedForecasts } from './settling-store.js';
import type { ForecastAt } from './timed.js';

/**
 * Decisions, disputes and the data of receipts. Locks are taken in this order: the question, then
 * the dispute. So a question is not resolved again while a dispute of its resolution is being
 * filed.
 */

/** Like `ResolutionWire`, but with `Date` objects, which become strings in JSON. */
export type ResolutionRow = Omit<
  ResolutionWire,
  'outcome_value' | 'known_at' | 'created_at' | 'finished_at'
> & {
  readonly outcome_value: number | null;
  readonly known_at: Date | null;
  readonly created_at: Date;
  readonly finished_at: Date | null;
};

const columns = (db: Db) => db`
  question_id, revision, kind, outcome, correct_options, outcome_value, known_at, note as resolution_note,
  evidence_urls, decided_by, case state when 'running' then state else 'done' end as state, total,
  case state when 'rescoring' then total else done end as done, created_at, finished_at`;

export const readLatest = (tx: Tx, question_id: string) =>
  firstRow(tx<ResolutionRow[]>`
    select ${columns(tx)}
    from resolutions
    where question_id = ${question_id}
    order by revision desc
    limit 1`);

/** Locks the question against other decisions and predictions until the commit. */
export const lockQuestion = async (tx: Tx, id: string): Promise<boolean> => {
  const rows = await tx`select id from questions where id = ${id} for update`;
  return rows.length === 1;
};

/** Stores a decision for the job. No more predictions can come, so their number is final. */
export const insertResolution = async (
  tx: Tx,
  made: Decision & { question_id: string; revision: number; decided_by: string; at: Date },
): Promise<ResolutionRow> => {
  // The new decision makes rescoring by an earlier decision unnecessary.
  await tx`
    update resolutions
    set state = 'done', done = total
    where question_id = ${made.question_id} and state = 'rescoring'`;
  const [row] = await tx<ResolutionRow[]>`
    insert into resolutions (
      question_id, revision, kind, outcome, correct_options, outcome_value, known_at, note, evidence_urls,
      decided_by, state, total, created_at
    )
    select
      ${made.question_id}::uuid, ${made.revision}, ${made.kind}, ${made.outcome}::boolean,
      ${made.correct_options as string[] | null}::text[], ${made.outcome_value}::float8, ${made.known_at}::timestamptz,
      ${made.resolution_note},
      ${made.evidence_urls as string[]}::text[], ${made.decided_by}, 'running', count(*),
      ${made.at}
    from predictions
    where question_id = ${made.question_id}
    returning ${columns(tx)}`;
  return row as ResolutionRow;
};

type OfQuestion =
  | 'question_type'
  | 'options'
  | 'weight'
  | 'outcome'
  | 'correct_options'
  | 'outcome_value'
  | 'revision'
  | keyof RangeColumns;

export interface ReceiptRow extends QuestionTimes, Pick<QuestionRow, OfQuestion> {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly placed_at: Date;
  readonly forecasts: readonly ForecastAt[];
  /** The points rule of the latest decision. */
  readonly points_rule: PointsRule | null;
  readonly is_resolved: boolean;
  readonly state: 'open' | 'pending' | 'settled' | 'voided';
}

export const readReceipt = (db: Db, id: string) =>
  firstRow(db<ReceiptRow[]>`
    select
      p.id, p.question_id, p.agent_id, p.created_at as placed_at, q.question_type, q.options,
      q.range_min, q.range_max, q.unit, q.open_min, q.open_max, q.weight, q.outcome,
      q.correct_options, q.outcome_value, q.revision, r.points_rule, r.known_at, ${questionTimes(db)},
      ${statedForecasts(db)}, q.status = 'resolved' as is_resolved,
      case
        when q.status in ('open', 'closed') then 'open'
        -- Pending until the job has applied the latest decision to this prediction.
        when not coalesce(r.state <> 'running' or r.cursor_agent >= p.agent_id, false)
          then 'pending'
        when q.status = 'voided' then 'voided'
        else 'settled'
      end as state
    from predictions p
    join questions q on q.id = p.question_id
    left join resolutions r on r.question_id = q.id and r.revision = q.revision
    where p.id = ${id}`);

export interface DecisionRow
  extends Pick<Decision, 'kind' | 'outcome' | 'correct_options' | 'outcome_value' | 'known_at'> {
  readonly revision: number;
  readonly points_rule: PointsRule;
  readonly created_at: Date;
}

export const readDecisions = (db: Db, question_id: string) => db<DecisionRow[]>`
  select
    revision, kind, outcome, correct_options, outcome_value, known_at, points_rule, created_at
  from resolutions
  where question_id = ${question_id}
  order by revision
  limit 100`;

/** Reads a prediction's ledger entries, oldest first. None is older than the prediction. */
export const readEntries = (db: Db, { agent_id, id }: Pick<ReceiptRow, 'agent_id' | 'id'>) => db<
  { readonly id: string; reason: string; amount: number; created_at: Date }[]
>`
  select id, reason, amount, created_at
  from ledger
  where agent_id = ${agent_id} and id >= ${id} and subject_id = ${id}
  order by id
  limit 500`;

export type DisputeRow = Omit<DisputeWire, 'created_at' | 'decided_at'> & {
  readonly created_at: Date;
  readonly decided_at: Date | null;
};

const disputeColumns = (db: Db) => db`
  d.id, d.id as dispute_id, d.question_id, d.agent_id as user_id, g.name as user_name, d.revision,
  d.reason, d.evidence_urls, d.status, d.note, d.new_revision, d.decided_at, d.created_at`;

export const readDispute = (db: Db, id: string) =>
  firstRow(db<DisputeRow[]>`
    select ${disputeColumns(db)} from disputes d join agents g on g.id = d.agent_id where d.id = ${id}`);

/** Locks and reads the question. `has_predicted` says whether this agent predicted on it. */
export const lockDisputedQuestion = (tx: Tx, question_id: string, agent_id: string | null) =>
  firstRow(tx<(Disputed & { readonly id: string; author_id: string | null; revision: number })[]>`
    select
      q.id, q.status, q.author_id, q.resolved_at, q.revision,
      exists (
        select from predictions p where p.question_id = q.id and p.agent_id = ${agent_id}
      ) as has_predicted
    from questions q
    where q.id = ${question_id}
    for share of q`);

/** Returns undefined if the unique index finds an open dispute of the agent on the question. */
export const insertDispute = async (
  tx: Tx,
  made: Filing &
    Pick<DisputeRow, 'id' | 'question_id' | 'revision'> & { agent_id: string; at: Date },
): Promise<DisputeRow | undefined> => {
  const { id, question_id, agent_id, revision, reason, evidence_urls, at } = made;
  const [row] = await tx<DisputeRow[]>`
    with d as (
      insert into disputes
        (question_id, id, agent_id, revision, reason, evidence_urls, status, created_at)
      values (
        ${question_id}, ${id}, ${agent_id}, ${revision}, ${reason},
        ${evidence_urls as string[]}::text[], 'open', ${at}
      )
      on conflict (question_id, agent_id) where status = 'open' do nothing
      returning *
    )
    select ${disputeColumns(tx)} from d join agents g on g.id = d.agent_id`;
  return row;
};

/** Locks the question and the dispute, so that only one of several parallel decisions is made. */
export const lockForDecision = async (tx: Tx, id: string): Promise<DisputeRow | undefined> => {
  await tx`
    select id
    from questions
    where id = (select question_id from disputes where id = ${id})
    for update`;
  await tx`select id from disputes where id = ${id} for update`;
  return readDispute(tx, id);
};

export interface Ending extends Pick<DisputeRow, 'id' | 'note' | 'new_revision'> {
  readonly status: Exclude<DisputeStatus, 'open'>;
  readonly decided_by: string | null;
  readonly at: Date;
}

/** open → withdrawn, upheld or rejected. Returns undefined if the dispute is no longer open. */
export const endDispute = async (tx: Tx, ending: Ending): Promise<DisputeRow | undefined> => {
  const { id, status, note, decided_by, new_revision, at } = ending;
  const [row] = await tx<DisputeRow[]>`
    with d as (
      update disputes
      set
        status = ${status},
        note = ${note},
        decided_by = ${decided_by},
        decided_at = ${at},
        new_revision = ${new_revision}
      where id = ${id} and status = 'open'
      returning *
    )
    select ${disputeColumns(tx)} from d join agents g on g.id = d.agent_id`;
  return row;
};

export interface DisputeFilter {
  /** Null for all questions. */
  readonly question_id: string | null;
  readonly status: DisputeStatus | undefined;
}

const conditions = (db: Db, { question_id, status }: DisputeFilter) => db`
  true
  ${question_id === null ? db`` : db`and d.question_id = ${question_id}`}
  ${status === undefined ? db`` : db`and d.status = ${status}`}`;

export const listDisputes = (db: Db, filter: DisputeFilter, page: PageRequest) =>
  db<DisputeRow[]>`
    select ${disputeColumns(db)}
    from disputes d
    join agents g on g.id = d.agent_id
    where ${conditions(db, filter)}
      ${newestFirst(db, 'd.id', page)}`;

export const countDisputes = (db: Db, filter: DisputeFilter) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total from disputes d where ${conditions(db, filter)}`);
