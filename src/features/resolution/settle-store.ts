import type { Db, Tx } from '../../kit/pg/client.js';
import type { Lease } from '../events/index.js';
import type { PointsRule } from '../points/index.js';
import type { Stated } from '../predictions/index.js';
import type { ForecastScore } from '../scores/index.js';

/** What the job reads and writes; accounts and standing are written by their owners. */

/** A decision that is under way, with what the question adds to it. */
export interface Job {
  readonly question_id: string;
  readonly revision: number;
  readonly kind: 'resolve' | 'void';
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  /** The last agent that is settled; null at the beginning. */
  readonly cursor_agent: string | null;
  readonly total: number;
  readonly done: number;
  /** 0 until the sums are made. */
  readonly forecasters: number;
  readonly log_sum: number;
  readonly points_rule: PointsRule;
  readonly created_at: Date;
  readonly category: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly weight: number;
}

/**
 * The decision to work on: the one with the least left, so that a large question does not hold up
 * small ones. Revisions of one question follow each other. Those in `set_aside` have to wait.
 */
export const readJob = async (db: Db, set_aside: readonly string[]): Promise<Job | undefined> => {
  const [row] = await db<Job[]>`
    select
      r.question_id, r.revision, r.kind, r.outcome, r.correct_options, r.cursor_agent, r.total,
      r.done, r.forecasters, r.log_sum, r.points_rule, r.created_at, q.category, q.question_type,
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
    limit 1`;
  return row;
};

export interface StatedCount extends Stated {
  readonly count: number;
}

/**
 * How often each different forecast was stated among the next predictions, in the order of their
 * agents: few rows, however many predictions there are. With the last of these agents.
 */
export const countStated = (
  db: Db,
  question_id: string,
  { after, most }: { readonly after: string | null; readonly most: number },
): PromiseLike<(StatedCount & { readonly last_agent: string })[]> =>
  db<(StatedCount & { last_agent: string })[]>`
    with looked_at as (
      select agent_id, prediction, probability, confidence, selected_option, probabilities
      from predictions
      where question_id = ${question_id}
        ${after === null ? db`` : db`and agent_id > ${after}`}
      order by agent_id
      limit ${most}
    )
    select
      prediction, probability, confidence, selected_option, probabilities,
      count(*)::integer as count,
      (select agent_id from looked_at order by agent_id desc limit 1) as last_agent
    from looked_at
    group by prediction, probability, confidence, selected_option, probabilities`;

/** Keeps the sums, once: whoever made them first decides. */
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
  /** What the revision before paid; null when none did. */
  readonly paid_net: number | null;
}

/** So many are read at a time; a number in the statement, so that its plan is made once. */
export const read_at_once = 300;

/**
 * The next predictions in the order of their agents, after one of these; fewer than `read_at_once`
 * only at the end. Scores are read from there on as well: all that were stored before would be
 * walked through again each time.
 */
export const readNext = (
  db: Db,
  { question_id }: Pick<Job, 'question_id'>,
  after: string | null,
): PromiseLike<SettledPrediction[]> =>
  db<SettledPrediction[]>`
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

export interface Step {
  readonly cursor_agent: string | null;
  readonly count: number;
  readonly is_last: boolean;
  readonly at: Date;
}

/**
 * Moves the cursor, in the transaction that settles the chunk; false when it stands elsewhere by
 * now, because somebody else settled it, or when the lease is another's. The cursor alone makes
 * every chunk count once: whoever comes second waits for the row, finds it moved, changes nothing.
 *
 * It also says how the chunk is settled. The commit does not wait for the disk: what a crash of
 * Postgres takes away goes with its cursor and is done again, and whatever came after it and waited
 * for the disk took it along. So accounts are held for less time. And rows are found by indexes,
 * also by a plan that was made while a table was small, and is kept.
 */
export const moveCursor = async (tx: Tx, job: Job, lease: Lease, step: Step): Promise<boolean> => {
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

// The client reads the type of an array off its first element, so booleans go as texts.
const flags = (values: readonly boolean[]): string[] => values.map((value) => (value ? 't' : 'f'));

/** Stores the scores of a chunk, in place of those of an earlier revision. */
export const putScores = async (
  tx: Tx,
  job: Job,
  made: { readonly scores: readonly ScoreRow[]; readonly n_options: number; readonly at: Date },
): Promise<void> => {
  const { scores, n_options, at } = made;
  await tx`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, net, resolved_at, settled_at
    )
    select
      ${job.question_id}::uuid, d.agent_id, d.prediction_id, ${job.revision}::integer,
      ${job.category}, ${job.question_type}, ${n_options}::smallint, d.forecast, d.stated,
      d.correct::boolean, d.hit::boolean, d.brier, d.log_score, d.baseline, d.relative, d.net,
      ${job.created_at}::timestamptz, ${at}::timestamptz
    from unnest(
      ${scores.map((s) => s.agent_id)}::uuid[],
      ${scores.map((s) => s.prediction_id)}::uuid[],
      ${scores.map((s) => s.forecast)}::double precision[],
      ${scores.map((s) => s.stated)}::smallint[],
      ${flags(scores.map((s) => s.correct))}::text[],
      ${flags(scores.map((s) => s.hit))}::text[],
      ${scores.map((s) => s.brier)}::double precision[],
      ${scores.map((s) => s.log_score)}::double precision[],
      ${scores.map((s) => s.baseline)}::double precision[],
      ${scores.map((s) => s.relative)}::double precision[],
      ${scores.map((s) => s.net)}::integer[]
    ) as d (
      agent_id, prediction_id, forecast, stated, correct, hit, brier, log_score, baseline,
      relative, net
    )
    on conflict (question_id, agent_id) do update
      set
        revision = excluded.revision, forecast = excluded.forecast, correct = excluded.correct,
        hit = excluded.hit, brier = excluded.brier, log_score = excluded.log_score,
        baseline = excluded.baseline, relative = excluded.relative, net = excluded.net,
        resolved_at = excluded.resolved_at, settled_at = excluded.settled_at`;
};
