import type { Db, Tx } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import type { Lease } from '../events/index.js';
import type { ForecastScore, PointsRule } from '../points/index.js';
import type { Stated } from '../predictions/index.js';
import type { QuestionRow } from '../questions/index.js';
import type { Decision } from './rules.js';

/** The SQL of the settling job; accounts and boards are written by their own features. */

/** A decision that is under way, with what the question adds to it. */
export interface Job
  extends Pick<Decision, 'kind' | 'outcome' | 'correct_options'>,
    Pick<QuestionRow, 'category' | 'question_type' | 'options' | 'weight'> {
  readonly question_id: string;
  readonly revision: number;
  /** The last agent that is settled; null at the beginning. */
  readonly cursor_agent: string | null;
  readonly total: number;
  /** 0 until the sums are made. */
  readonly forecasters: number;
  readonly log_sum: number;
  readonly points_rule: PointsRule;
  readonly created_at: Date;
}

/**
 * The decision to work on: the one with the least left, so that a large question does not hold up
 * small ones. Revisions of one question follow each other. Those in `set_aside` have to wait.
 */
export const readJob = (db: Db, set_aside: readonly string[]) =>
  firstRow(db<Job[]>`
    select
      r.question_id, r.revision, r.kind, r.outcome, r.correct_options, r.cursor_agent, r.total,
      r.forecasters, r.log_sum, r.points_rule, r.created_at, q.category, q.question_type,
      q.options, q.weight
    from resolutions r
    join questions q on q.id = r.question_id
    where r.state = 'running'
      and r.question_id <> all (${set_aside as string[]}::uuid[])
      and not exists (
        select from resolutions e
        where e.question_id = r.question_id
          and e.state = 'running'
          and e.revision < r.revision
      )
    order by r.total - r.done, r.created_at
    limit 1`);

export interface StatedCount extends Stated {
  readonly count: number;
}

/** How often each different forecast was stated. No more come: the question is decided. */
export const countStated = (db: Db, question_id: string) => db<StatedCount[]>`
  select
    prediction, probability, confidence, selected_option, probabilities, count(*)::integer as count
  from predictions
  where question_id = ${question_id}
  group by prediction, probability, confidence, selected_option, probabilities`;

/** Keeps the sums, once: those that were made first stay. */
export const keepSums = async (
  db: Db,
  job: Pick<Job, 'question_id' | 'revision'>,
  sums: { readonly forecasters: number; readonly log_sum: number },
): Promise<void> => {
  await db`
    update resolutions
    set forecasters = ${sums.forecasters}, log_sum = ${sums.log_sum}
    where question_id = ${job.question_id}
      and revision = ${job.revision}
      and state = 'running'
      and forecasters = 0`;
};

export interface SettledPrediction extends Stated {
  readonly agent_id: string;
  readonly id: string;
  /** The net that the revision before paid; null when none did. */
  readonly paid_net: number | null;
}

/** As many are read at a time; a number in the statement, so that its plan is made once. */
export const read_at_once = 300;

/**
 * The next predictions in the order of their agents; fewer than `read_at_once` only at the end.
 * Scores are read from the cursor on as well: all that were stored before would be walked through
 * again each time.
 */
export const readNext = (
  db: Db,
  { question_id, cursor_agent: after }: Pick<Job, 'question_id' | 'cursor_agent'>,
) => db<SettledPrediction[]>`
  select
    p.agent_id, p.id, p.prediction, p.probability, p.confidence, p.selected_option,
    p.probabilities, s.net as paid_net
  from predictions p
  left join scores s
    on s.question_id = p.question_id
    and s.agent_id = p.agent_id
    ${after === null ? db`` : db`and s.agent_id > ${after}`}
  where p.question_id = ${question_id}
    ${after === null ? db`` : db`and p.agent_id > ${after}`}
  order by p.agent_id
  limit 300`;

/**
 * Moves the cursor, in the transaction that settles the chunk; false when another process has moved
 * it, or holds the lease. The cursor alone makes
 * every chunk count once: the second process waits for the row, finds it moved, changes nothing.
 *
 * The commit does not wait for the disk, so that accounts are held for less time: what a crash of
 * Postgres takes away goes with its cursor and is done again. Rows are found by indexes, also by a
 * cached plan that was made while a table was small.
 */
export const moveCursor = async (
  tx: Tx,
  job: Job,
  lease: Lease,
  step: { readonly cursor_agent: string | null; count: number; is_last: boolean; at: Date },
): Promise<boolean> => {
  const rows = await tx`
    update resolutions
    set
      cursor_agent = ${step.cursor_agent}::uuid,
      done = done + ${step.count}::integer,
      state = ${step.is_last ? 'done' : 'running'},
      finished_at = ${step.is_last ? step.at : null}::timestamptz
    where question_id = ${job.question_id}
      and revision = ${job.revision}
      and state = 'running'
      and cursor_agent is not distinct from ${job.cursor_agent}::uuid
      and exists (
        select
        from leases
        where name = ${lease.name} and holder = ${lease.holder} and fence = ${lease.fence}
      )
    returning
      set_config('synchronous_commit', 'off', true),
      set_config('enable_seqscan', 'off', true)`;
  return rows.length === 1;
};

export interface ScoreRow extends ForecastScore {
  readonly agent_id: string;
  readonly prediction_id: string;
  readonly stated: number;
  readonly relative: number | null;
  readonly net: number;
}

/** Stores the scores of a chunk, in place of those of an earlier revision. */
export const putScores = async (
  tx: Tx,
  job: Job,
  made: { readonly scores: readonly ScoreRow[]; readonly n_options: number; readonly at: Date },
): Promise<void> => {
  if (made.scores.length === 0) return;
  await tx`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, net, resolved_at, settled_at
    )
    select
      ${job.question_id}::uuid, agent_id, prediction_id, ${job.revision}::integer,
      ${job.category}, ${job.question_type}, ${made.n_options}::smallint, forecast, stated,
      correct, hit, brier, log_score, baseline, relative, net, ${job.created_at}::timestamptz,
      ${made.at}::timestamptz
    from json_to_recordset(${JSON.stringify(made.scores)}::text::json) as d (
      agent_id uuid, prediction_id uuid, forecast double precision, stated smallint,
      correct boolean, hit boolean, brier double precision, log_score double precision,
      baseline double precision, relative double precision, net integer
    )
    on conflict (question_id, agent_id) do update
      set
        revision = excluded.revision, forecast = excluded.forecast, correct = excluded.correct,
        hit = excluded.hit, brier = excluded.brier, log_score = excluded.log_score,
        baseline = excluded.baseline, relative = excluded.relative, net = excluded.net,
        resolved_at = excluded.resolved_at, settled_at = excluded.settled_at`;
};
