import type { Db, Tx } from '../../db/client.js';
import { insert_sql, type NewPrediction } from './columns.js';

/** What a batch of predictions locks, reads and writes. */

export interface LockedQuestion {
  readonly id: string;
  /** The number of its last prediction. */
  readonly seq: number;
  readonly is_open: boolean;
  /** Forecasts made elsewhere are for imported questions that are not decided yet. */
  readonly takes_imports: boolean;
}

/** Locks questions in the order of their ids; those that are not there are left out. */
export const lockQuestions = (tx: Tx, ids: readonly string[]): Promise<LockedQuestion[]> => tx<
  LockedQuestion[]
>`
  with locked as materialized (
    select q.id, q.status, q.opens_at, q.closes_at, q.source, s.seq
    from questions q
    join question_seqs s on s.question_id = q.id
    where q.id = any (${ids as string[]}::uuid[])
    order by q.id
    for no key update
  )
  -- Not now(): that is the time before the wait for the locks.
  select
    id, seq,
    status = 'open' and opens_at <= clock_timestamp() and closes_at > clock_timestamp() as is_open,
    status in ('open', 'closed') and source is not null as takes_imports
  from locked`;

/** What is known of the agent of a draft, and of the agent on the draft's question. */
export interface Standing {
  readonly points: number;
  /** The agent's last prediction. */
  readonly last_id: string | null;
  /** The agent's prediction on the question. */
  readonly own_id: string | null;
}

interface Pair {
  readonly question_id: string;
  readonly agent_id: string;
}

/** Locks the agents of drafts against other placings, and then reads their standings. */
export const lockAgents = async (tx: Tx, drafts: readonly Pair[]): Promise<Standing[]> => {
  const agent_ids = drafts.map(({ agent_id }) => agent_id);
  // In the order of the locks. An advisory lock writes nothing and waits for no settlement.
  const locked = tx`
    select pg_advisory_xact_lock(number)
    from (
      select distinct hashtextextended(id, 0) as number
      from unnest(${[...new Set(agent_ids)]}::text[]) as id
      order by number
    ) as numbers`.execute();
  // A statement of its own, whose view is younger than the locks.
  const read = tx<Standing[]>`
    select
      coalesce((select a.balance from accounts a where a.agent_id = d.agent_id), 0) as points,
      (
        select p.id from predictions p where p.agent_id = d.agent_id order by p.id desc limit 1
      ) as last_id,
      (
        select p.id
        from predictions p
        where p.question_id = d.question_id and p.agent_id = d.agent_id
      ) as own_id
    from unnest(
      ${drafts.map(({ question_id }) => question_id)}::uuid[],
      ${agent_ids}::uuid[]
    ) with ordinality as d (question_id, agent_id, n)
    order by d.n`.execute();
  const [standings] = await Promise.all([read, locked]);
  return standings;
};

export interface EarlierRow {
  readonly question_id: string;
  readonly seq: number;
  readonly model_family: string;
  readonly reasoning: string;
  readonly citations: readonly string[];
}

/** Predictions of each question after the number `seq`, in the order of their numbers. */
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
  -- By the index, whatever the plan was made for.
  cross join lateral (
    select question_id, seq, model_family, reasoning, citations
    from predictions
    where question_id = d.question_id and seq > 0 and seq > d.seq
    order by seq
    limit ${limit}
  ) as p
  order by p.question_id, p.seq
  limit ${limit}`;

export interface CitedRow {
  readonly agent_id: string;
  readonly id: string;
  readonly citations: readonly string[];
}

/** What each agent cited after its prediction `last_id`, in the order of its predictions. */
export const readCitedSince = async (
  db: Db,
  known: readonly { readonly agent_id: string; readonly last_id: string | null }[],
): Promise<readonly CitedRow[]> => {
  if (known.length === 0) return [];
  const before_all = '00000000-0000-0000-0000-000000000000';
  return db<CitedRow[]>`
    select p.*
    from unnest(
      ${known.map(({ agent_id }) => agent_id)}::uuid[],
      ${known.map(({ last_id }) => last_id ?? before_all)}::uuid[]
    ) as d (agent_id, last_id)
    cross join lateral (
      select agent_id, id, citations
      from predictions
      where agent_id = d.agent_id and id > d.last_id
      order by id
      offset 0
    ) as p
    order by p.agent_id, p.id`;
};

/** Stores predictions under their numbers, and the last number of each question; sent at once. */
export const insertPredictions = (
  tx: Tx,
  rows: readonly (NewPrediction & { readonly seq: number })[],
): Promise<unknown> =>
  tx`
    with d as (
      select *
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (${tx.unsafe(insert_sql.record)}, seq integer)
    ),
    stored as (
      insert into predictions (${tx.unsafe(insert_sql.names)}, seq) select ${tx.unsafe(insert_sql.taken)}, seq from d
    )
    update question_seqs s
    set seq = last.seq
    from (select question_id, max(seq) as seq from d group by question_id) as last
    where s.question_id = last.question_id`.execute();
