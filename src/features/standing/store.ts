import type { Db, Sql, Tx } from '../../kit/pg/client.js';
import { least_resolved } from '../scores/index.js';
import type { AgentKind, BoardKind, Cell, Slice, Sums } from './rules.js';

/** Standing in Postgres: whose has changed, and what it is. */

/**
 * Says that the scores, link or suspension of these agents changed in this transaction, so
 * that the boards follow within a second of its commit.
 */
export const markStanding = async (tx: Tx, agent_ids: readonly string[]): Promise<void> => {
  if (agent_ids.length === 0) return;
  await tx`
    insert into standing_changes (agent_id)
    select distinct unnest(${agent_ids as string[]}::uuid[])`;
};

/**
 * Holds the boards until the transaction ends; undefined while somebody else does. What follows in
 * the transaction is read by indexes from the beginning: a plan that was made while there were no
 * scores, and is kept, would read all of them for every turn (0.4 s with 100,000).
 */
export const holdBoards = async (tx: Tx): Promise<number | undefined> => {
  const [row] = await tx<{ fence: number }[]>`
    with by_index as (select set_config('enable_seqscan', 'off', true))
    select fence
    from board_head, by_index
    where only_row
    for update of board_head skip locked`;
  return row?.fence;
};

export const setFence = async (tx: Tx, fence: number): Promise<void> => {
  await tx`update board_head set fence = ${fence} where only_row`;
};

export interface TakenMarks {
  readonly agents: readonly string[];
  /** Where to go on; null when there are no more beyond these. */
  readonly next: string | null;
}

/** So many marks are taken at a time; a number in the statement, so that its plan is made once. */
const marks_at_once = 200;

/**
 * Takes marks away, in the order of agents from the one after `after` on, and gives their agents;
 * what is not committed yet stays for another turn. Going on where the last turn ended, and not
 * from the beginning, passes by the places of marks that went and were not vacuumed yet.
 */
export const takeMarks = async (tx: Tx, after: string): Promise<TakenMarks> => {
  const rows = await tx<{ agent_id: string }[]>`
    delete from standing_changes
    where ctid = any (
      array(
        select ctid
        from standing_changes
        where agent_id > ${after}
        order by agent_id
        limit 200
      )
    )
    returning agent_id`;
  const agents = [...new Set(rows.map(({ agent_id }) => agent_id))].sort();
  return { agents, next: rows.length < marks_at_once ? null : (agents.at(-1) ?? null) };
};

export const clearMarks = async (tx: Tx): Promise<void> => {
  await tx`delete from standing_changes`;
};

export const readPillars = async (db: Db): Promise<readonly string[]> => {
  const rows = await db<{ slug: string }[]>`select slug from pillars order by position`;
  return rows.map(({ slug }) => slug);
};

/** Ids of agents after one of them, in their order. */
export const listAgents = async (
  db: Db,
  after: string,
  limit: number,
): Promise<readonly string[]> => {
  const rows = await db<{ id: string }[]>`
    select id
    from agents
    where id > ${after}
    order by id
    limit ${limit}`;
  return rows.map(({ id }) => id);
};

/**
 * Fractions are summed as whole billionths and means are rounded half up, here and in `rules.ts`
 * alike: whatever the order in which Postgres meets the rows, and whoever does the division, boards
 * and their recomputation agree to the last digit.
 */
const sums = (db: Db) => db`
  count(*)::integer as n,
  (count(*) filter (where s.correct))::integer as correct,
  (count(*) filter (where s.hit))::integer as hits,
  sum(s.stated)::integer as stated,
  sum(s.net)::integer as net,
  sum(round(s.brier * 1e9)::bigint)::bigint as brier,
  sum(round(s.brier * s.brier * 1e9)::bigint)::bigint as squares`;

/** Who is on boards at all. */
const isRanked = (db: Db) => db`a.owner_id is not null and a.suspended_at is null`;

const kindColumn = (db: Db) => db`
  case when is_imported(a.owner_id) then 'imported' else 'agent' end`;

export interface RankedRow {
  readonly agent_id: string;
  readonly kind: AgentKind;
}

/** Those of these agents that may be on boards. */
export const readRanked = (db: Db, agents: readonly string[]): Promise<readonly RankedRow[]> =>
  db<RankedRow[]>`
    select a.id as agent_id, ${kindColumn(db)} as kind
    from agents a
    where a.id = any (${agents as string[]}::uuid[]) and ${isRanked(db)}`;

/**
 * The scores of these agents by category, bin and age: `age` counts the times of `since`, the
 * latest first, that a score is older than.
 */
export const readCells = (
  db: Db,
  since: readonly string[],
  agents: readonly string[],
): Promise<readonly Cell[]> => db<Cell[]>`
  select
    s.agent_id,
    s.category,
    least(s.stated / 10, 9) as bin,
    cardinality(${since as string[]}::timestamptz[])
      - width_bucket(s.resolved_at, ${[...since].reverse()}::timestamptz[]) as age,
    ${sums(db)}
  from scores s
  where s.agent_id = any (${agents as string[]}::uuid[])
  group by s.agent_id, s.category, bin, age
  order by s.agent_id, bin`;

const keyColumn = (db: Db, kind: BoardKind) => {
  if (kind === 'points') return db`-net::float8`;
  if (kind === 'accuracy') return db`-(correct::float8 / n)`;
  return kind === 'brier'
    ? db`floor(brier::float8 / (n * 1000.0::float8) + 0.5) / 1e6`
    : db`floor(distance::float8 * 10000 / n + 0.5) / 1e6`;
};

export interface BoardAsk {
  readonly kind: BoardKind;
  readonly slice: Slice;
  readonly limit: number;
  readonly offset: number;
  readonly after: { readonly key: number; readonly agent_id: string } | null;
}

export interface BoardRow extends Sums {
  readonly agent_id: string;
  readonly key: number;
  readonly rank: number;
}

export interface BoardPage {
  readonly total: number;
  /** One more than the page when there is more. */
  readonly rows: readonly BoardRow[];
}

const ranked = (db: Db, { kind, slice }: BoardAsk) => db`
  binned as (
    select s.agent_id, least(s.stated / 10, 9) as bin, ${sums(db)}
    from scores s
    where (${slice.category === null} or s.category = ${slice.category})
      and (${slice.since === null} or s.resolved_at >= ${slice.since}::timestamptz)
    group by s.agent_id, bin
  ),
  summed as (
    select
      agent_id,
      sum(n)::integer as n,
      sum(correct)::integer as correct,
      sum(net)::integer as net,
      sum(brier)::bigint as brier,
      sum(squares)::bigint as squares,
      sum(abs(100 * hits - stated))::integer as distance,
      array_agg(n order by bin) as bin_n,
      array_agg(stated order by bin) as bin_stated,
      array_agg(hits order by bin) as bin_hits
    from binned
    group by agent_id
  ),
  standing as (
    select
      a.id as agent_id,
      coalesce(s.n, 0) as n,
      coalesce(s.correct, 0) as correct,
      coalesce(s.net, 0) as net,
      coalesce(s.brier, 0) as brier,
      coalesce(s.squares, 0) as squares,
      coalesce(s.distance, 0) as distance,
      coalesce(s.bin_n, '{}') as bin_n,
      coalesce(s.bin_stated, '{}') as bin_stated,
      coalesce(s.bin_hits, '{}') as bin_hits
    from agents a
    left join summed s on s.agent_id = a.id
    where ${isRanked(db)}
      and ${kindColumn(db)} = ${slice.agents}
      and (${slice.is_whole && kind === 'points'} or s.n is not null)
  ),
  keyed as (
    select *, ${keyColumn(db, kind)} as key
    from standing
    where n >= ${kind === 'points' ? 0 : least_resolved}
  ),
  ranked as (
    select *, (rank() over (order by key))::integer as rank
    from keyed
  )`;

/** A page of a board from the record alone: as the live board has it, to the last digit. */
export const readBoard = async (sql: Sql, ask: BoardAsk): Promise<BoardPage> => {
  const { after } = ask;
  const rows = await sql<
    (Omit<BoardRow, 'agent_id'> & { agent_id: string | null; total: number })[]
  >`
    with ${ranked(sql, ask)}
    select t.total, r.*
    from (select count(*)::integer as total from ranked) t
    left join lateral (
      select *
      from ranked
      where ${after === null} or (key, agent_id) >
        (${after?.key ?? null}::float8, ${after?.agent_id ?? null}::uuid)
      order by key, agent_id
      offset ${ask.offset}
      limit ${ask.limit + 1}
    ) r on true`;
  return {
    total: rows[0]?.total ?? 0,
    rows: rows.filter((row): row is BoardRow & { total: number } => row.agent_id !== null),
  };
};

export interface NamedRow {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  readonly points: number;
}

export const readNames = async (
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, NamedRow>> => {
  const rows = await db<NamedRow[]>`
    select a.id, a.name, a.model, a.model_family, c.balance as points
    from agents a
    join accounts c on c.agent_id = a.id
    where a.id = any (${ids as string[]}::uuid[])`;
  return new Map(rows.map((row) => [row.id, row]));
};

export interface NetRow {
  /** What the resolved predictions won, less what they lost. */
  readonly net: number;
  readonly kind: AgentKind;
}

export const readNet = async (db: Db, agent_id: string): Promise<NetRow> => {
  const [row] = await db<NetRow[]>`
    select
      ${kindColumn(db)} as kind,
      (select coalesce(sum(net), 0)::integer from scores where agent_id = a.id) as net
    from agents a
    where a.id = ${agent_id}`;
  return row ?? { net: 0, kind: 'agent' };
};

/** What those on the boards of a kind won, the most first. */
export const readNets = async (db: Db, kind: AgentKind): Promise<readonly number[]> => {
  const rows = await db<{ net: number }[]>`
    select coalesce(sum(s.net), 0)::integer as net
    from agents a
    left join scores s on s.agent_id = a.id
    where ${isRanked(db)} and ${kindColumn(db)} = ${kind}
    group by a.id
    order by 1 desc`;
  return rows.map(({ net }) => net);
};
