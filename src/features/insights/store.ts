import { firstIdAt } from '../../kit/ids.js';
import type { Db } from '../../kit/pg/client.js';
import { givenSides } from '../predictions/index.js';
import type { MeanRow, ResolvedRow, SideRow } from './rules.js';

/**
 * What happened in a stretch of time: from `from` on and before `to`. Ids of agents, comments and
 * disputes begin with the time they were made at, so their indexes find those of a day.
 */
export interface Day {
  readonly from: Date;
  readonly to: Date;
}

export interface FamilyDay {
  readonly model_family: string;
  readonly predictions: number;
  readonly agents: number;
}

/** Predictions of the day by family; through the index of block ranges by time. */
export const readFamilies = (db: Db, { from, to }: Day) => db<FamilyDay[]>`
  select
    model_family,
    count(*)::integer as predictions,
    count(distinct agent_id)::integer as agents
  from predictions
  where created_at >= ${from} and created_at < ${to}
  group by model_family
  order by model_family`;

export interface Counts {
  readonly questions: number;
  readonly comments: number;
  readonly replies: number;
  readonly new_agents: number;
  readonly published: number;
  readonly voided: number;
  readonly disputes: number;
}

export const readCounts = async (db: Db, { from, to }: Day): Promise<Counts> => {
  const [first, end] = [firstIdAt(from.getTime()), firstIdAt(to.getTime())];
  const [row] = await db<Counts[]>`
    select
      (
        select count(distinct question_id)::integer
        from predictions
        where created_at >= ${from} and created_at < ${to}
      ) as questions,
      (
        select count(*)::integer
        from comments
        where id >= ${first} and id < ${end} and hidden_at is null
          and parent_id is null and prediction_id is null
      ) as comments,
      (
        select count(*)::integer
        from comments
        where id >= ${first} and id < ${end} and hidden_at is null
          and (parent_id is not null or prediction_id is not null)
      ) as replies,
      (
        select count(*)::integer from agents where id >= ${first} and id < ${end}
      ) as new_agents,
      (
        select count(*)::integer
        from questions
        where published_at >= ${from} and published_at < ${to}
      ) as published,
      (
        select count(*)::integer
        from resolutions
        where created_at >= ${from} and created_at < ${to} and kind = 'void'
      ) as voided,
      (
        select count(*)::integer from disputes where id >= ${first} and id < ${end}
      ) as disputes`;
  return row as Counts;
};

/** How many were on each side at the end of the day, of the questions predicted on that day. */
export const readSides = (db: Db, { from, to }: Day) => db<SideRow[]>`
  with moved as materialized (
    select distinct question_id
    from predictions
    where created_at >= ${from} and created_at < ${to}
  ),
  sides as (
    select
      p.question_id,
      coalesce(p.selected_option::integer, p.prediction::integer) as side,
      count(*)::integer as count
    from moved m
    join predictions p on p.question_id = m.question_id
    where p.created_at < ${to}
    group by 1, 2
  )
  select s.question_id, q.question, q.question_type, q.options, s.side, s.count
  from sides s
  join questions q on q.id = s.question_id
  order by s.question_id, s.side`;

export interface ListedRow {
  readonly id: string;
  readonly question: string;
  readonly category: string;
  readonly closes_at: Date;
  readonly total: number;
}

/** The first of those published on the day; each row says how many there are. */
export const readPublished = (db: Db, { from, to }: Day, most: number) => db<ListedRow[]>`
  select id, question, category, closes_at, count(*) over ()::integer as total
  from questions
  where published_at >= ${from} and published_at < ${to}
  order by published_at, id
  limit ${most}`;

/** Open at `from`, and to close before `to`. */
export const readClosing = (db: Db, { from, to }: Day, most: number) => db<ListedRow[]>`
  select id, question, category, closes_at, count(*) over ()::integer as total
  from questions
  where closes_at >= ${from}
    and closes_at < ${to}
    and published_at < ${from}
    and (closed_at is null or closed_at >= ${from})
    and (voided_at is null or voided_at >= ${from})
  order by closes_at, id
  limit ${most}`;

/** Questions that were resolved for the first time on the day, with what holds now. */
export const readResolved = (db: Db, { from, to }: Day, most: number) => db<ResolvedRow[]>`
  select
    q.id, q.question, q.question_type, q.options, q.outcome, q.correct_options, q.revision,
    not exists (
      select from resolutions x where x.question_id = q.id and x.state = 'running'
    ) as is_settled
  from resolutions r
  join questions q on q.id = r.question_id
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
  limit ${most}`;

/** The mean forecast: the chance of YES, or what each option was given. */
export const readMeans = (db: Db, ids: readonly string[]) => db<MeanRow[]>`
  select
    p.question_id,
    s.side,
    sum(s.given)::float8 / (count(*) * greatest(cardinality(q.options) - 1, 1)) as mean,
    count(*)::integer as count
  from questions q
  join predictions p on p.question_id = q.id
  cross join ${givenSides(db)}
  where q.id = any (${ids as string[]}::uuid[])
    and (q.question_type = 'multi' or s.side = 1)
  group by p.question_id, s.side, cardinality(q.options)
  order by 1, 2`;

export interface ScoreRow {
  readonly question_id: string;
  readonly best: number;
  readonly median: number;
}

/** Brier scores of the agents on each question. */
export const readScores = (db: Db, ids: readonly string[]) => db<ScoreRow[]>`
  select
    question_id,
    min(brier) as best,
    percentile_cont(0.5) within group (order by brier) as median
  from scores
  where question_id = any (${ids as string[]}::uuid[])
  group by question_id`;

export interface AgentDay {
  readonly user_id: string;
  readonly name: string;
  readonly model_family: string;
  readonly points: number;
  readonly resolved: number;
  readonly brier: number;
}

/** Those who won most by what resolved; linked, not suspended, not imported, as on the boards. */
export const readTopAgents = (db: Db, ids: readonly string[], most: number) => db<AgentDay[]>`
  with won as (
    select
      agent_id, sum(net)::integer as points, count(*)::integer as resolved,
      round(avg(brier::numeric), 6)::float8 as brier
    from scores
    where question_id = any (${ids as string[]}::uuid[])
    group by agent_id
    having sum(net) > 0
  )
  select w.agent_id as user_id, g.name, g.model_family, w.points, w.resolved, w.brier
  from won w
  join agents g on g.id = w.agent_id
  where not is_imported(g.owner_id) and g.suspended_at is null
  order by w.points desc, w.brier, w.agent_id
  limit ${most}`;

export interface FamilyScore {
  readonly model_family: string;
  readonly resolved: number;
  readonly correct: number;
  readonly brier: number;
}

export const readFamilyScores = (db: Db, ids: readonly string[]) => db<FamilyScore[]>`
  select
    p.model_family,
    count(*)::integer as resolved,
    (count(*) filter (where s.correct))::integer as correct,
    round(avg(s.brier::numeric), 6)::float8 as brier
  from scores s
  join predictions p on p.question_id = s.question_id and p.agent_id = s.agent_id
  where s.question_id = any (${ids as string[]}::uuid[])
  group by p.model_family`;

export const readNames = (db: Db, ids: readonly string[]) =>
  db<{ readonly id: string; readonly question: string; readonly options: readonly string[] }[]>`
    select id, question, options from questions where id = any (${ids as string[]}::uuid[])`;
