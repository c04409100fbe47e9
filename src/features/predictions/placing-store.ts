import type { Db } from '../../db/client.js';
import { prediction_placed } from '../events/catalogue.js';
import { insert_sql, type NewPrediction } from './columns.js';

/** Stores a batch of predictions, and reads the state by which it is judged. */

export interface QuestionState {
  readonly id: string;
  /** The number of the last prediction on the question. */
  readonly seq: number;
  readonly is_open: boolean;
  /** True for an imported question that is not decided yet. */
  readonly takes_imports: boolean;
}

export interface AgentState {
  readonly id: string;
  /** The agent's last prediction. Null if the agent has no predictions. */
  readonly last_id: string | null;
  readonly points: number;
}

/** The prediction of an agent on a question. */
export interface OwnPrediction {
  readonly question_id: string;
  readonly agent_id: string;
  readonly id: string;
}

export interface BatchToStore {
  /** The questions as judged. `open`: must take predictions. `imports`: must take imports. */
  readonly questions: readonly {
    readonly id: string;
    readonly seq: number;
    readonly open: boolean;
    readonly imports: boolean;
  }[];
  readonly agents: readonly AgentState[];
  /** The questions and agents of all drafts, even of drafts that store nothing. */
  readonly pairs: readonly Omit<OwnPrediction, 'id'>[];
  readonly rows: readonly (NewPrediction & {
    readonly seq: number;
    /** The serialised event. */
    readonly body: string;
  })[];
}

export interface Outcome {
  /** True if nothing has changed since the batch was judged. If false, nothing was stored. */
  readonly fits: boolean;
  readonly questions: readonly QuestionState[];
  readonly agents: readonly AgentState[];
  readonly own: readonly OwnPrediction[];
}

/**
 * Stores the predictions of a batch with their events, unless a question or an agent has changed
 * since the batch was judged. Locks the questions and then the agents, each in the order of their
 * ids, and returns their state under the locks.
 */
export const storeBatch = async (
  db: Db,
  { questions, agents, pairs, rows }: BatchToStore,
): Promise<Outcome> => {
  const question_ids = questions.map(({ id }) => id);
  const agent_ids = agents.map(({ id }) => id);
  const [outcome] = await db<[Outcome]>`
    with
    locked_questions as materialized (
      select q.id, q.status, q.opens_at, q.closes_at, q.source, s.seq
      from questions q
      join question_seqs s on s.question_id = q.id
      where q.id = any (${question_ids}::uuid[])
      order by q.id
      for no key update
    ),
    locked_agents as materialized (
      select agent_id, prediction_id
      from last_predictions
      where agent_id = any (${agent_ids}::uuid[])
        and (select count(*) from locked_questions) >= 0
      order by agent_id
      for no key update
    ),
    -- Not now(), which is the time before the wait for the locks.
    question_states as materialized (
      select
        id, seq,
        status = 'open' and opens_at <= clock_timestamp() and closes_at > clock_timestamp()
          as is_open,
        status in ('open', 'closed') and source is not null as takes_imports
      from locked_questions
    ),
    agent_states as materialized (
      select l.agent_id as id, l.prediction_id as last_id, coalesce(a.balance, 0) as points
      from locked_agents l
      left join accounts a on a.agent_id = l.agent_id
    ),
    own as materialized (
      select p.question_id, p.agent_id, p.id
      from unnest(
        ${pairs.map(({ question_id }) => question_id)}::uuid[],
        ${pairs.map(({ agent_id }) => agent_id)}::uuid[]
      ) as pair (question_id, agent_id)
      join predictions p
        on p.question_id = pair.question_id and p.agent_id = pair.agent_id
    ),
    d as materialized (
      select *
      from json_to_recordset(${JSON.stringify(rows)}::text::json)
        as d (${db.unsafe(insert_sql.record)}, seq integer, body text)
    ),
    judged as materialized (
      select
        (
          select count(*)
          from question_states s
          join json_to_recordset(${JSON.stringify(questions)}::text::json)
            as w (id uuid, seq integer, open boolean, imports boolean) on w.id = s.id
          where w.seq = s.seq and s.is_open >= w.open and s.takes_imports >= w.imports
        ) = cardinality(${question_ids}::uuid[])
        and (
          select count(*)
          from agent_states s
          join json_to_recordset(${JSON.stringify(agents)}::text::json)
            as w (id uuid, last_id uuid, points integer) on w.id = s.id
          where w.last_id is not distinct from s.last_id and w.points = s.points
        ) = cardinality(${agent_ids}::uuid[])
        and not exists (
          select from own join d on d.question_id = own.question_id and d.agent_id = own.agent_id
        ) as fits
    ),
    stored as (
      insert into predictions (${db.unsafe(insert_sql.names)}, seq)
      select ${db.unsafe(insert_sql.taken)}, seq from d where (select fits from judged)
    ),
    emitted as (
      insert into outbox (id, event, question_id, agent_id, owner_id, body)
      select event_id, ${prediction_placed.name}, question_id, agent_id, owner_id, body
      from d
      where (select fits from judged)
    ),
    numbered as (
      update question_seqs s
      set seq = last.seq
      from (select question_id, max(seq) as seq from d group by question_id) as last
      where s.question_id = last.question_id
        and s.question_id = any (${question_ids}::uuid[])
        and (select fits from judged)
    ),
    noted as (
      update last_predictions l
      set prediction_id = last.id
      from (select distinct on (agent_id) agent_id, id from d order by agent_id, id desc) as last
      where l.agent_id = last.agent_id
        and l.agent_id = any (${agent_ids}::uuid[])
        and (select fits from judged)
    )
    select
      fits,
      coalesce((select json_agg(s) from question_states s), '[]') as questions,
      coalesce((select json_agg(s) from agent_states s), '[]') as agents,
      coalesce((select json_agg(own) from own), '[]') as own
    from judged`;
  return outcome;
};

export interface EarlierRow {
  readonly question_id: string;
  readonly seq: number;
  readonly model_family: string;
  readonly reasoning: string;
  readonly citations: readonly string[];
}

/** Reads the predictions of each question after the number `seq`, in the order of their numbers. */
export const readStoredSince = (
  db: Db,
  known: readonly { readonly question_id: string; readonly seq: number }[],
  limit: number,
): Promise<EarlierRow[]> => db<EarlierRow[]>`
  select p.*
  from unnest(
    ${known.map(({ question_id }) => question_id)}::uuid[],
    ${known.map(({ seq }) => seq)}::integer[]
  ) as d (question_id, seq)
  -- Lateral, so that even an old cached plan uses the index.
  cross join lateral (
    select question_id, seq, model_family, reasoning, citations
    from predictions
    where question_id = d.question_id and seq > 0 and seq > d.seq
    order by seq
    limit ${limit}
  ) as p
  order by p.question_id, p.seq
  limit ${limit}`;

export interface AgentRow extends AgentState {
  /** A prediction that is newer than the known one. Null if there is none. */
  readonly prediction_id: string | null;
  readonly citations: readonly string[] | null;
}

/** Reads agents, with a row for each prediction after the known one, oldest first. */
export const readAgents = (
  db: Db,
  known: readonly { readonly id: string; readonly last_id: string | null }[],
): Promise<readonly AgentRow[]> => {
  const before_all = '00000000-0000-0000-0000-000000000000';
  return db<AgentRow[]>`
    select
      l.agent_id as id, l.prediction_id as last_id, coalesce(a.balance, 0) as points,
      p.id as prediction_id, p.citations
    from unnest(
      ${known.map(({ id }) => id)}::uuid[],
      ${known.map(({ last_id }) => last_id ?? before_all)}::uuid[]
    ) as d (agent_id, known_id)
    join last_predictions l on l.agent_id = d.agent_id
    left join accounts a on a.agent_id = d.agent_id
    left join lateral (
      select id, citations
      from predictions
      where agent_id = d.agent_id and id > d.known_id
      order by id
      offset 0
    ) as p on true
    order by l.agent_id, p.id`;
};
