import type { Db } from '../../db/client.js';
import type { Consensus } from '../consensus/rules.js';
import { givenSides, timedForecasts } from '../predictions/index.js';
import type { QuestionRow } from '../questions/index.js';
import type { Chosen, SampleRow } from './rules.js';

/** Queries for a brief. Texts are read only for the few predictions that are quoted. */

/** Counts of forecasts, and sums of the chances they give to one side, in units of `givenSides`. */
export interface WindowRow {
  readonly name: '1d' | '7d' | '30d';
  readonly since: Date;
  /** Valid forecasts that were placed within the window. */
  readonly count_new: number;
  readonly given_new: number;
}

/** Reads the last 1, 7 and 30 days before `as_of`. Empty if there are no predictions. */
export const readWindows = (
  db: Db,
  question_id: string,
  { side, as_of }: { readonly side: number; readonly as_of: Date },
) => db<WindowRow[]>`
  with given as (
    select p.forecast_at, p.replaced_at, d.created_at, s.given
    from questions q
    cross join ${timedForecasts(db, db`q.id`)} p
    join predictions d on d.question_id = q.id and d.agent_id = p.agent_id
    cross join ${givenSides(db)}
    where q.id = ${question_id} and s.side = ${side}
  )
  select
    w.name, w.since,
    (count(*) filter (where is_new))::integer as count_new,
    coalesce(sum(given) filter (where is_new), 0)::float8 as given_new
  from given p
  cross join (
    select days || 'd' as name, ${as_of}::timestamptz - make_interval(days => days) as since
    from unnest(array[1, 7, 30]) as days
  ) w
  cross join lateral (
    select p.replaced_at is null and p.created_at >= w.since as is_new
  ) i
  group by w.name, w.since
  order by w.since desc`;

const sampleColumns = (db: Db) => db`
  p.id, p.agent_id, coalesce(p.owner_id, p.agent_id) as owner, p.model_family,
  coalesce(p.selected_option::integer, p.prediction::integer, 0) as side, p.confidence / 100.0::float8 as confidence, p.upvotes,
  p.downvotes, p.citations, octet_length(p.reasoning) as length, p.created_at`;

/**
 * Reads the newest visible predictions of a question. If they were ordered by id alone instead of
 * by `seq`, Postgres might scan the index of all ids and discard predictions on other questions.
 */
export const readNewest = (db: Db, question_id: string, most: number) => db<SampleRow[]>`
  select ${sampleColumns(db)}
  from predictions p
  where p.question_id = ${question_id} and p.hidden_at is null and p.seq > 0
  order by p.seq desc, p.id desc
  limit ${most}`;

export const readVoted = (db: Db, question_id: string, sides: readonly number[], most: number) =>
  db<SampleRow[]>`
    select v.*
    from unnest(${sides as number[]}::integer[]) as s (side)
    cross join lateral (
      select ${sampleColumns(db)}
      from predictions p
      where p.question_id = ${question_id}
        and coalesce(p.selected_option::integer, p.prediction::integer) = s.side
        and p.upvotes > 0
        and p.hidden_at is null
      order by p.upvotes - p.downvotes desc, p.id desc
      limit ${most}
    ) v`;

/** The text of a prediction, and its agent's record on other questions. */
export interface QuotedRow {
  readonly id: string;
  readonly name: string;
  readonly reasoning: string;
  readonly resolved: number;
  readonly correct: number;
  readonly brier: number | null;
  readonly variance: number | null;
}

/** Skips hidden predictions. Records cover an agent's newest 1,000 resolved predictions. */
export const readQuoted = (db: Db, ids: readonly string[]) => db<QuotedRow[]>`
  select p.id, g.name, p.reasoning, r.*
  from predictions p
  join agents g on g.id = p.agent_id
  cross join lateral (
    select
      count(*)::integer as resolved,
      (count(*) filter (where correct))::integer as correct,
      round(avg(brier::numeric), 6)::float8 as brier,
      round(var_samp(brier::numeric), 9)::float8 as variance
    from (
      select correct, brier
      from scores
      where agent_id = p.agent_id and question_id <> p.question_id and brier is not null
      order by resolved_at desc, prediction_id
      limit 1000
    ) newest
  ) r
  where p.id = any (${ids as string[]}::uuid[]) and p.hidden_at is null`;

export interface DisputeRow {
  readonly id: string;
  readonly name: string;
  readonly reason: string;
  readonly evidence_urls: readonly string[];
  readonly created_at: Date;
  readonly open: number;
}

/** Reads open disputes, oldest first. In each row, `open` is the number of all open disputes. */
export const readOpenDisputes = (db: Db, question_id: string, most: number) => db<DisputeRow[]>`
  select
    d.id, g.name, d.reason, d.evidence_urls, d.created_at, count(*) over ()::integer as open
  from disputes d
  join agents g on g.id = d.agent_id
  where d.question_id = ${question_id} and d.status = 'open'
  order by d.id
  limit ${most}`;

export interface LifeRow {
  readonly closed_at: Date | null;
  readonly voided_at: Date | null;
  /** Number of hidden predictions, at most 1,000. They still count in the figures. */
  readonly hidden: number;
}

export const readLife = async (db: Db, question_id: string): Promise<LifeRow> => {
  const [row] = await db<LifeRow[]>`
    select
      q.closed_at,
      q.voided_at,
      (
        select count(*)::integer
        from (
          select
          from predictions p
          where p.hidden_at is not null and p.question_id = q.id
          limit 1000
        ) few
      ) as hidden
    from questions q
    where q.id = ${question_id}`;
  return row ?? { closed_at: null, voided_at: null, hidden: 0 };
};

export type Quoted = SampleRow & QuotedRow;

export interface BriefInput {
  readonly question: QuestionRow;
  readonly consensus: Consensus;
  readonly as_of: Date;
  /** When the question stopped taking predictions. Null if it still takes them. */
  readonly ended_at: Date | null;
  readonly life: LifeRow;
  /** With the consensus at the start of each window; undefined for drafts. */
  readonly windows: readonly (WindowRow & { readonly before: Consensus | undefined })[];
  readonly sees_reasoning: boolean;
  /** The newest and the most upvoted predictions, without duplicates. */
  readonly sample: readonly SampleRow[];
  /** Empty if the reader may not see reasoning texts. */
  readonly chosen: Chosen<Quoted>;
  readonly disputes: readonly DisputeRow[];
}
