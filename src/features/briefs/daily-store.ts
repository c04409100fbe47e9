import type { Db } from '../../db/client.js';
import { givenSides, stoodAt, timedForecasts } from '../predictions/index.js';
import {
  type Day,
  daily_limits,
  type MovedRow,
  type ResolvedRow,
  type SideRow,
} from './daily-rules.js';

/** Queries for the daily insights. Columns have the same names as in the API. */

/** Selects the questions on which a forecast was placed or revised on this day. */
const predictedOn = (db: Db, { from, to }: Day) => db`
  select question_id
  from predictions
  where created_at >= ${from} and created_at < ${to}
  union
  select question_id
  from predictions
  where revised_at >= ${from} and revised_at < ${to}
  union
  select question_id
  from earlier_forecasts
  where created_at >= ${from} and created_at < ${to}`;

/**
 * Reads the questions whose mean changed most: for YES, or for the option that changed most. The
 * means only select the questions for which the headlines are computed.
 */
export const readMoved = (db: Db, day: Day) => db<MovedRow[]>`
  with moved as materialized (${predictedOn(db, day)}),
  sums as (
    select
      p.question_id,
      q.options,
      s.side,
      (count(*) filter (where was_there))::integer as predictions_before,
      (count(*) filter (where is_there))::integer as predictions_after,
      sum(s.given) filter (where was_there) as given_before,
      sum(s.given) filter (where is_there) as given_after
    from moved m
    join questions q on q.id = m.question_id
    cross join ${timedForecasts(db, db`q.id`)} p
    cross join ${givenSides(db)}
    cross join lateral (
      select ${stoodAt(db, day.from)} as was_there, ${stoodAt(db, day.to)} as is_there
    ) i
    where (q.question_type = 'multi' or q.question_type = 'binary' and s.side = 1)
    group by p.question_id, q.options, s.side
    having count(*) filter (where was_there) >= ${daily_limits.min_before}
  ),
  means as (
    select
      *,
      round(given_before::numeric / (predictions_before * others * 100), 2) as before,
      round(given_after::numeric / (predictions_after * others * 100), 2) as after
    from sums
    cross join lateral (select greatest(cardinality(options) - 1, 1) as others) o
  ),
  strongest as (
    select question_id, predictions_before, predictions_after, max(abs(after - before)) as moved
    from means
    group by question_id, predictions_before, predictions_after
  )
  select s.question_id, q.question, s.predictions_before, s.predictions_after
  from strongest s
  join questions q on q.id = s.question_id
  order by s.moved desc, s.question_id
  limit ${daily_limits.compared}`;

/** Counts the forecasts per side at the end of the day, for questions with a forecast that day. */
export const readSides = (db: Db, day: Day) => db<SideRow[]>`
  with moved as materialized (${predictedOn(db, day)}),
  sides as (
    select
      p.question_id,
      coalesce(p.selected_option::integer, p.prediction::integer) as side,
      count(*)::integer as count
    from moved m
    cross join ${timedForecasts(db, db`m.question_id`)} p
    where ${stoodAt(db, day.to)} and p.cdf is null
    group by 1, 2
  )
  select s.question_id, q.question, q.question_type, q.options, s.side, s.count
  from sides s
  join questions q on q.id = s.question_id
  order by s.question_id, s.side`;

interface ListedRow {
  readonly question_id: string;
  readonly question: string;
  readonly category: string;
  readonly closes_at: Date;
  readonly total: number;
}

const readListed = async (db: Db, where: ReturnType<Db>, by: ReturnType<Db>) => {
  const rows = await db<ListedRow[]>`
    select id as question_id, question, category, closes_at, count(*) over ()::integer as total
    from questions
    where ${where}
    order by ${by}, id
    limit ${daily_limits.listed}`;
  return { total: rows[0]?.total ?? 0, questions: rows.map(({ total: _, ...row }) => row) };
};

export const readPublished = (db: Db, { from, to }: Day) =>
  readListed(db, db`published_at >= ${from} and published_at < ${to}`, db`published_at`);

/** Reads questions that are open at the end of the day and close within `closing_days`. */
export const readClosing = (db: Db, { to }: Day) => {
  const where = db`
    closes_at >= ${to}
    and closes_at < ${to}::timestamptz + make_interval(days => ${daily_limits.closing_days})
    and published_at < ${to}
    and (closed_at is null or closed_at >= ${to})
    and (voided_at is null or voided_at >= ${to})`;
  return readListed(db, where, db`closes_at`);
};

/** Reads questions that were first resolved on this day, with their current outcome. */
export const readResolved = (db: Db, { from, to }: Day) => db<ResolvedRow[]>`
  select
    q.id as question_id, q.question, q.question_type, q.options, q.outcome, q.correct_options,
    q.outcome_value, q.unit, q.revision, a.median_agent_brier, a.best_agent_brier
  from resolutions r
  join questions q on q.id = r.question_id
  cross join lateral (
    select
      round((percentile_cont(0.5) within group (order by brier))::numeric, 3)::float8
        as median_agent_brier,
      round(min(brier)::numeric, 3)::float8 as best_agent_brier
    from scores
    where question_id = q.id
  ) a
  where r.created_at >= ${from}
    and r.created_at < ${to}
    and r.kind = 'resolve'
    and q.status = 'resolved'
    and not exists (
      select
      from resolutions e
      where e.question_id = r.question_id and e.kind = 'resolve' and e.revision < r.revision
    )
  order by r.created_at, q.id
  limit ${daily_limits.resolved}`;

/** Reads the ranked agents that won the most points on these questions. */
export const readTopAgents = (db: Db, ids: readonly string[]) => db`
  with won as (
    select
      agent_id, sum(net)::integer as points, count(*)::integer as resolved,
      round(avg(brier::numeric), 6) as brier
    from scores
    where question_id = any (${ids as string[]}::uuid[])
    group by agent_id
    having sum(net) > 0
  )
  select
    w.agent_id as user_id, g.name, g.model_family, w.points, w.resolved,
    round(w.brier, 3)::float8 as brier
  from won w
  join agents g on g.id = w.agent_id
  where not is_imported(g.owner_id) and g.suspended_at is null
  order by w.points desc, w.brier, w.agent_id
  limit ${daily_limits.top}`;

/** Reads families with predictions made or resolved on this day, the best score first. */
export const readFamilies = (db: Db, { from, to }: Day, ids: readonly string[]) => db`
  with day as (
    select
      model_family,
      count(*)::integer as predictions,
      count(distinct agent_id)::integer as agents
    from predictions
    where created_at >= ${from} and created_at < ${to}
    group by model_family
  ),
  scored as (
    select
      p.model_family,
      count(*)::integer as resolved,
      (count(*) filter (where s.correct))::integer as correct,
      round(avg(s.brier::numeric), 3)::float8 as brier
    from scores s
    join predictions p on p.question_id = s.question_id and p.agent_id = s.agent_id
    where s.question_id = any (${ids as string[]}::uuid[])
    group by p.model_family
  )
  select
    model_family, coalesce(predictions, 0) as predictions, coalesce(agents, 0) as agents,
    coalesce(resolved, 0) as resolved, coalesce(correct, 0) as correct, brier
  from day
  full join scored using (model_family)
  order by brier nulls last, predictions desc, model_family`;
