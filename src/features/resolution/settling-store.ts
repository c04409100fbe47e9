import { type Db, readPages, type Sql, type Tx } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import type { Lease } from '../events/index.js';
import type { GroupScore } from '../points/group-scores.js';
import type { PointsRule } from '../points/rules.js';
import type { ForecastScore } from '../points/score-rules.js';
import type { QuestionTimes } from '../points/time-weighting.js';
import type { ForecastColumns } from '../predictions/distribution.js';
import type { QuestionRow } from '../questions/index.js';
import type { RangeColumns } from '../questions/range.js';
import type { Decision } from './rules.js';
import type { ForecastAt } from './timed.js';

/** The SQL of the settling job. Other features write accounts and boards. */

/** A decision with the question's fields that determine the payment of each prediction. */
export interface Decided
  extends Pick<Decision, 'outcome' | 'correct_options' | 'outcome_value'>,
    Pick<QuestionRow, 'question_type' | 'options' | 'weight'>,
    Omit<RangeColumns, 'unit'>,
    QuestionTimes {
  readonly points_rule: PointsRule;
}

/** A decision that is being settled. */
export interface Job extends Decided, Pick<Decision, 'kind'>, Pick<QuestionRow, 'category'> {
  readonly question_id: string;
  readonly revision: number;
  /** `rescoring`: agents are already paid and notified. Only the scores are computed again. */
  readonly state: 'running' | 'rescoring';
  /** The last settled agent. Null before the first. */
  readonly cursor_agent: string | null;
  readonly total: number;
  readonly created_at: Date;
}

/** Milliseconds since 1970. Fractions are cut off, as in a `Date`. */
export const toMs = (db: Db, time: string) =>
  db.unsafe(`floor(extract(epoch from ${time}) * 1000)::bigint`);

/** Columns of question `q`: its closing times, and earlier closed periods as [from, to] in ms. */
export const questionTimes = (db: Db) => db`
  q.closes_at, q.closed_at, (
    select coalesce(
      json_agg(json_build_array(${toMs(db, 't.from_at')}, ${toMs(db, 't.to_at')}) order by t.from_at),
      '[]'
    )
    from closed_times t
    where t.question_id = q.id
  ) as closed_times`;

/** Reads the closing times and the earlier closed periods of a question, for a preview. */
export const readTimes = (db: Db, question_id: string) =>
  firstRow(db<Omit<QuestionTimes, 'known_at'>[]>`
    select ${questionTimes(db)} from questions q where q.id = ${question_id}`);

/** Column with all forecasts of prediction `p`, as `ForecastAt`, in order. */
export const statedForecasts = (db: Db) => db`
  (
    select
      json_agg(
        json_build_object(
          'revision', f.revision, 'prediction', f.prediction, 'probability', f.probability,
          'confidence', f.confidence, 'selected_option', f.selected_option,
          'probabilities', f.probabilities, 'cdf', f.cdf, 'at_ms', ${toMs(db, 'f.forecast_at')}
        )
        order by f.revision
      )
    from forecasts f
    where f.question_id = p.question_id and f.agent_id = p.agent_id
  ) as forecasts`;

/**
 * Reads the decision to work on: the one with the fewest predictions left, so that large questions
 * do not delay small ones. A question's revisions are settled in order. Skips `set_aside`.
 */
export const readJob = (db: Db, set_aside: readonly string[]) =>
  firstRow(db<Job[]>`
    select
      r.question_id, r.revision, r.kind, r.state, r.outcome, r.correct_options, r.outcome_value, r.known_at,
      r.cursor_agent, r.total, r.points_rule, r.created_at, q.category, q.question_type, q.options,
      q.range_min, q.range_max, q.open_min, q.open_max, q.weight, ${questionTimes(db)}
    from resolutions r
    join questions q on q.id = r.question_id
    where r.state <> 'done'
      and r.question_id <> all (${set_aside as string[]}::uuid[])
      and not exists (
        select from resolutions e
        where e.question_id = r.question_id
          and e.state = 'running'
          and e.revision < r.revision
      )
    order by r.state = 'rescoring', r.total - r.done, r.created_at
    limit 1`);

export interface ForecastRow extends ForecastColumns, Pick<ForecastAt, 'at_ms'> {
  readonly agent_id: string;
  /** The owner's id. An agent without an owner counts as its own owner. */
  readonly owner: string;
  readonly model_family: string;
  readonly model: string;
}

/** Reads all forecasts on a decided question, by time. No more forecasts can come. */
export const readForecasts = (tx: Tx, question_id: string) =>
  readPages<ForecastRow>(
    tx,
    tx<ForecastRow[]>`
      select
        f.agent_id, f.prediction, f.probability, f.confidence, f.selected_option, f.probabilities,
        f.cdf, f.model_family, a.model, coalesce(f.owner_id, f.agent_id) as owner,
        ${toMs(tx, 'f.forecast_at')} as at_ms
      from forecasts f
      join agents a on a.id = f.agent_id
      where f.question_id = ${question_id}
      order by f.forecast_at, f.agent_id, f.revision`,
    500,
  );

export interface SettledPrediction {
  readonly agent_id: string;
  readonly id: string;
  /** The net that the previous revision paid. Null without such a payment. */
  readonly paid_net: number | null;
  /** All forecasts, in order. */
  readonly forecasts: readonly ForecastAt[];
}

/** Predictions read at a time. The SQL has the literal 300, so that Postgres plans it only once. */
export const read_at_once = 300;

/**
 * Reads the next predictions in the order of agents. Returns fewer than `read_at_once` only at the
 * end. Scores are also read only from the cursor on; otherwise each call would scan all earlier
 * ones. Sequential scans are off, because a plan may have been made while a table was small.
 */
export const readNext = (
  sql: Sql,
  { question_id, cursor_agent: after }: Pick<Job, 'question_id' | 'cursor_agent'>,
) =>
  sql.begin(async (tx) => {
    tx`set local enable_seqscan = off`.execute();
    return tx<SettledPrediction[]>`
      select p.agent_id, p.id, s.net as paid_net, ${statedForecasts(tx)}
      from predictions p
      left join scores s
        on s.question_id = p.question_id
        and s.agent_id = p.agent_id
        ${after === null ? tx`` : tx`and s.agent_id > ${after}`}
      where p.question_id = ${question_id}
        ${after === null ? tx`` : tx`and p.agent_id > ${after}`}
      order by p.agent_id
      limit 300`;
  });

/**
 * Moves the cursor, in the transaction that settles the chunk. Returns false if another process has
 * moved it or holds the lease. The cursor alone makes every chunk count once: a second process
 * waits for the row, finds the cursor moved, and changes nothing.
 *
 * The commit does not wait for the disk, so that accounts are locked for less time. A crash of
 * Postgres can lose a chunk only together with its cursor, and then the chunk is settled again.
 * Sequential scans are off, because a cached plan may have been made while a table was small.
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
      state = ${step.is_last ? 'done' : job.state},
      finished_at = coalesce(finished_at, ${step.is_last ? step.at : null}::timestamptz)
    where question_id = ${job.question_id}
      and revision = ${job.revision}
      and state = ${job.state}
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

/** Forecasts of a number have `crps`. Other forecasts have the scores of probabilities instead. */
type Scores =
  | (ForecastScore & { readonly crps?: null })
  | ({ readonly crps: number } & Pick<ForecastScore, 'correct' | 'hit'>);

export type ScoreRow = Scores & {
  readonly agent_id: string;
  readonly prediction_id: string;
  readonly stated: number;
  readonly relative: number | null;
  readonly net: number;
  /** A Postgres array literal. SQL cannot read numbers and nulls from a JSON array here. */
  readonly crowd: string;
  readonly skill: number | null;
};

interface Made {
  readonly n_options: number;
  readonly at: Date;
}

/** Stores the scores of a chunk, after deleting these agents' scores of an earlier revision. */
export const putScores = async (
  tx: Tx,
  job: Job,
  made: Made & { readonly scores: readonly ScoreRow[]; readonly known: readonly string[] },
): Promise<void> => {
  if (made.known.length > 0) {
    await tx`
      delete from scores
      where question_id = ${job.question_id}
        and agent_id = any (${made.known as string[]}::uuid[])`;
  }
  if (made.scores.length === 0) return;
  await tx`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, log_score, baseline, crps, relative, net, crowd, skill, resolved_at,
      settled_at
    )
    select
      ${job.question_id}::uuid, agent_id, prediction_id, ${job.revision}::integer,
      ${job.category}, ${job.question_type}, ${made.n_options}::smallint, forecast, stated,
      correct, hit, brier, log_score, baseline, crps, relative, net, crowd::double precision[], skill,
      ${job.created_at}::timestamptz, ${made.at}::timestamptz
    from json_to_recordset(${JSON.stringify(made.scores)}::text::json) as d (
      agent_id uuid, prediction_id uuid, forecast double precision, stated smallint,
      correct boolean, hit boolean, brier double precision, log_score double precision,
      baseline double precision, crps double precision, relative double precision, net integer,
      crowd text, skill double precision
    )`;
};

/** Replaces the groups' scores of an earlier revision. */
export const putGroupScores = async (
  tx: Tx,
  job: Job,
  made: Made & { readonly groups: readonly GroupScore[] },
): Promise<void> => {
  await tx`delete from group_scores where question_id = ${job.question_id}`;
  if (made.groups.length === 0) return;
  await tx`
    insert into group_scores (
      question_id, kind, name, revision, category, question_type, n_options, n_agents, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, resolved_at, settled_at
    )
    select
      ${job.question_id}::uuid, kind, name, ${job.revision}::integer, ${job.category},
      ${job.question_type}, ${made.n_options}::smallint, n_agents, forecast,
      round(10000 * stated)::smallint, correct, hit, brier, log_score, baseline, relative,
      ${job.created_at}::timestamptz, ${made.at}::timestamptz
    from json_to_recordset(${JSON.stringify(made.groups)}::text::json) as d (
      kind text, name text, n_agents integer, forecast double precision,
      stated double precision, correct boolean, hit boolean, brier double precision,
      log_score double precision, baseline double precision, relative double precision
    )`;
};
