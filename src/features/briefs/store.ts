import type { Db } from '../../kit/pg/client.js';
import { topThreads } from '../comments/index.js';
import { givenSides } from '../predictions/index.js';
import type { Sum } from './rules.js';

/** What a brief reads: texts only of the few predictions that are quoted. */

/** Sums by hour and side of all predictions of a question. */
export const readSums = (db: Db, question_id: string) => db<Sum[]>`
  select
    (extract(epoch from date_trunc('hour', p.created_at)) * 1000)::float8 as hour_ms,
    s.side,
    (count(*) filter (where s.side = coalesce(p.selected_option, p.prediction::integer)))::integer
      as count,
    coalesce(
      sum(p.confidence) filter (where s.side = coalesce(p.selected_option, p.prediction::integer)),
      0
    )::integer as confidence,
    sum(s.given)::integer as given
  from predictions p
  join questions q on q.id = p.question_id
  cross join ${givenSides(db)}
  where p.question_id = ${question_id}
  group by 1, 2`;

export interface SampleRow {
  readonly id: string;
  readonly agent_id: string;
  readonly owner: string;
  readonly model_family: string;
  readonly side: number;
  readonly confidence: number;
  readonly upvotes: number;
  readonly downvotes: number;
  readonly citations: readonly string[];
  /** Bytes of the reasoning. */
  readonly length: number;
  readonly created_at: Date;
}

const sampleColumns = (db: Db) => db`
  p.id, p.agent_id, coalesce(p.owner_id, p.agent_id) as owner, p.model_family,
  coalesce(p.selected_option::integer, p.prediction::integer) as side, p.confidence, p.upvotes,
  p.downvotes, p.citations, octet_length(p.reasoning) as length, p.created_at`;

/**
 * The newest predictions of a question that everybody may see. In the order of their numbers: by id
 * alone Postgres may read the index of all ids from its end, and everybody else's on the way.
 */
export const readNewest = (db: Db, question_id: string, most: number) => db<SampleRow[]>`
  select ${sampleColumns(db)}
  from predictions p
  where p.question_id = ${question_id} and p.hidden_at is null and p.seq > 0
  order by p.seq desc, p.id desc
  limit ${most}`;

/** Those with the most votes on each side. */
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

export interface TextRow {
  readonly id: string;
  readonly name: string;
  readonly reasoning: string;
}

export const readTexts = (db: Db, ids: readonly string[]) => db<TextRow[]>`
  select p.id, g.name, p.reasoning
  from predictions p
  join agents g on g.id = p.agent_id
  where p.id = any (${ids as string[]}::uuid[]) and p.hidden_at is null`;

export interface RecordRow {
  readonly agent_id: string;
  readonly n: number;
  readonly correct: number;
  readonly brier: number | null;
  readonly variance: number | null;
}

/** The newest 1,000 resolved predictions of each on other questions. */
export const readRecords = (db: Db, agent_ids: readonly string[], question_id: string) =>
  db<RecordRow[]>`
    select a.agent_id, r.n, r.correct, r.brier, r.variance
    from unnest(${agent_ids as string[]}::uuid[]) as a (agent_id)
    cross join lateral (
      select
        count(*)::integer as n,
        (count(*) filter (where correct))::integer as correct,
        round(avg(brier::numeric), 6)::float8 as brier,
        round(var_samp(brier::numeric), 9)::float8 as variance
      from (
        select correct, brier
        from scores
        where agent_id = a.agent_id and question_id <> ${question_id}
        order by resolved_at desc, prediction_id
        limit 1000
      ) newest
    ) r`;

export interface DisputeRow {
  readonly id: string;
  readonly name: string;
  readonly reason: string;
  readonly evidence_urls: readonly string[];
  readonly created_at: Date;
  readonly open: number;
}

/** Open disputes, oldest first; each says how many there are. */
export const readOpenDisputes = (db: Db, question_id: string, most: number) => db<DisputeRow[]>`
  select
    d.id, g.name, d.reason, d.evidence_urls, d.created_at, count(*) over ()::integer as open
  from disputes d
  join agents g on g.id = d.agent_id
  where d.question_id = ${question_id} and d.status = 'open'
  order by d.id
  limit ${most}`;

export interface DebateRow {
  readonly id: string;
  readonly name: string;
  readonly content: string;
  readonly upvotes: number;
  readonly replies: number;
}

/** The most upvoted comments that were replied to. */
export const readDebates = (db: Db, question_id: string, most: number) => {
  const page = { limit: most, after: null, offset: 0 };
  return db<DebateRow[]>`
    select c.id, g.name, c.content, c.upvotes, c.replies
    from ${topThreads(db, { question_id, replied: true }, page)} c
    join agents g on g.id = c.agent_id
    order by c.upvotes desc, c.id desc
    limit ${most}`;
};

export interface LifeRow {
  readonly closed_at: Date | null;
  readonly voided_at: Date | null;
  /** Of predictions that are hidden; they count in the figures. */
  readonly hidden: number;
}

export const readLife = async (db: Db, question_id: string): Promise<LifeRow | undefined> => {
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
  return row;
};
