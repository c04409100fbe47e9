import type { Db, Tx } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import { least_resolved } from '../points/index.js';
import {
  type AgentKind,
  agent_kinds,
  type BoardName,
  type Detail,
  detailOf,
  type Slice,
  type Sums,
} from './rules.js';

/** Boards and the records of agents, from Postgres; and which of them changed. */

/**
 * Says that the scores, link or suspension of these agents changed in this transaction, so that the
 * boards follow within seconds of its commit. Scores of one category move only its boards and those
 * of all categories.
 */
export const markStanding = async (
  tx: Tx,
  agent_ids: readonly string[],
  category: string | null = null,
): Promise<void> => {
  if (agent_ids.length === 0) return;
  await tx`
    insert into standing_changes (agent_id, category)
    select distinct unnest(${agent_ids as string[]}::uuid[]), ${category}::text`;
};

/** Says that comments of these agents, votes on them, or the status of the agents changed. */
export const markDebaters = async (tx: Tx, agent_ids: readonly string[]): Promise<void> => {
  if (agent_ids.length === 0) return;
  await tx`
    insert into debater_changes (agent_id, id)
    select agent_id, gen_random_uuid()
    from unnest(${agent_ids as string[]}::uuid[]) as d (agent_id)`;
};

/** Locks the boards until the transaction ends; false while another process does. */
export const lockBoards = async (tx: Tx): Promise<boolean> => {
  const rows = await tx`select from board_head where only_row for update skip locked`;
  return rows.count === 1;
};

/**
 * Deletes rows of `standing_changes` and updates `board_nets`, by which ranks are counted; what is
 * not committed yet stays for another turn. Returns the categories in which scores changed; null
 * stands for all of them.
 */
export const takeStandingChanges = async (
  tx: Tx,
  most: number,
): Promise<ReadonlySet<string | null>> => {
  const taken = await tx<{ agent_id: string; category: string | null }[]>`
    delete from standing_changes
    where ctid = any (array(select ctid from standing_changes limit ${most}))
    returning agent_id, category`;
  const agents = [...new Set(taken.map(({ agent_id }) => agent_id))];
  if (agents.length > 0) await putNets(tx, agents);
  return new Set(taken.map(({ category }) => category));
};

/** A statement of its own after the changes are taken, so that it sees their scores. */
const putNets = async (tx: Tx, agents: readonly string[]): Promise<void> => {
  await tx`
    with changed as (select unnest(${agents as string[]}::uuid[]) as agent_id),
    nets as (${netsOf(tx, tx`a.id in (select agent_id from changed)`)}),
    gone as (
      delete from board_nets b
      where b.agent_id in (select agent_id from changed)
        and not exists (select from nets n where n.agent_id = b.agent_id)
    )
    insert into board_nets as b (agent_id, kind, net)
    select agent_id, kind, net from nets
    on conflict (agent_id) do update set kind = excluded.kind, net = excluded.net
    where (b.kind, b.net) is distinct from (excluded.kind, excluded.net)`;
};

export const takeDebaterChanges = async (tx: Tx): Promise<boolean> => {
  const rows = await tx`delete from debater_changes`;
  return rows.count > 0;
};

export const readPillars = async (db: Db): Promise<readonly string[]> => {
  const rows = await db<{ slug: string }[]>`select slug from pillars order by position`;
  return rows.map(({ slug }) => slug);
};

/** The agents that boards rank: linked and not suspended. */
const isRanked = (db: Db) => db`a.owner_id is not null and a.suspended_at is null`;

const kindColumn = (db: Db) => db`
  case when is_imported(a.owner_id) then 'imported' else 'agent' end`;

/** Wins less losses of ranked agents. */
const netsOf = (db: Db, which: ReturnType<typeof isRanked>) => db`
  select a.id as agent_id, ${kindColumn(db)} as kind, coalesce(sum(s.net), 0)::integer as net
  from agents a
  left join scores s on s.agent_id = a.id
  where ${which} and ${isRanked(db)}
  group by a.id`;

/**
 * The sums of each agent's predictions in a slice. Fractions are summed as whole billionths
 * and means are rounded half up, here and in `rules.ts` alike: whatever the order in which Postgres
 * meets the rows, boards and the record of an agent agree to the last digit.
 */
const standing = (db: Db, { category, since }: Slice) => db`
  binned as (
    select
      s.agent_id,
      least(s.stated / 1000, 9) as bin,
      count(*)::integer as n,
      (count(*) filter (where s.correct))::integer as correct,
      (count(*) filter (where s.hit))::integer as hits,
      sum(s.stated)::integer as stated,
      sum(s.net)::integer as net,
      sum(round(s.brier * 1e9)::bigint)::bigint as brier,
      sum(round(s.brier * s.brier * 1e9)::bigint)::bigint as squares
    from scores s
    where (${category === null} or s.category = ${category})
      and (${since === null} or s.resolved_at >= ${since}::timestamptz)
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
      sum(abs(10000 * hits - stated))::integer as distance,
      array_agg(n order by bin) as bin_n,
      array_agg(stated order by bin) as bin_stated,
      array_agg(hits order by bin) as bin_hits
    from binned
    group by agent_id
  ),
  standing as (
    select
      a.id as agent_id,
      ${kindColumn(db)} as agents,
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
    -- On the boards of everything agents are listed that have nothing resolved, too.
    where ${isRanked(db)} and (${category === null && since === null} or s.n is not null)
  )`;

/** Visible comments of ranked agents, counted. */
const debaters = (db: Db) => db`
  standing as (
    select
      c.agent_id,
      ${kindColumn(db)} as agents,
      sum(c.upvotes)::integer as upvotes,
      count(*) filter (where c.parent_id is null and c.prediction_id is null)::integer as comments,
      count(*) filter (where c.parent_id is not null or c.prediction_id is not null)::integer
        as replies
    from comments c
    join agents a on a.id = c.agent_id
    where c.hidden_at is null and ${isRanked(db)}
    group by c.agent_id, a.owner_id
  )`;

/** The sort key of each board, the lowest first; null for an agent that is not on it. */
const forecastKeys = (db: Db) => db`
  ('points', -net::float8),
  ('accuracy', case when n >= ${least_resolved} then -(correct::float8 / n) end),
  (
    'brier',
    case when n >= ${least_resolved} then
      floor(brier::float8 / (n * 1000.0::float8) + 0.5) / 1e6
    end
  ),
  (
    'calibration',
    case when n >= ${least_resolved} then floor(distance::float8 * 100 / n + 0.5) / 1e6 end
  )`;

/** All agents on some boards of a slice, of every kind. */
const ranked = (db: Db, slice: Slice, kinds: readonly BoardName[]) => {
  const is_debaters = kinds.includes('debaters');
  return db`
    ${is_debaters ? debaters(db) : standing(db, slice)},
    ranked as (
      select
        s.*,
        k.kind,
        k.key,
        (rank() over (partition by agents, k.kind order by k.key))::integer as rank,
        row_number() over (partition by agents, k.kind order by k.key, agent_id) as place,
        (count(*) over (partition by agents, k.kind))::integer as total
      from standing s
      cross join lateral (
        values ${is_debaters ? db`('debaters', -upvotes::float8)` : forecastKeys(db)}
      ) as k (kind, key)
      where k.key is not null and k.kind = any (${kinds as BoardName[]})
    )`;
};

export interface BoardRow {
  readonly agent_id: string;
  readonly key: number;
  readonly rank: number;
  readonly detail: Detail;
}

export interface BoardPage {
  readonly total: number;
  /** One more than the page when there is more. */
  readonly rows: readonly BoardRow[];
}

type RankedRow = Omit<BoardRow, 'detail'> &
  Sums & {
    readonly agents: AgentKind;
    readonly kind: BoardName;
    readonly total: number;
    readonly comments: number;
    readonly replies: number;
  };

const rowOf = (row: RankedRow): BoardRow => {
  const { kind, agent_id, key, rank, comments, replies } = row;
  const detail =
    kind === 'debaters'
      ? { n: comments + replies, interval: null, comments, replies }
      : detailOf(kind, row);
  return { agent_id, key, rank, detail };
};

export interface BoardQuery {
  readonly kind: BoardName;
  /** Left out: agents that are not imported. */
  readonly agents?: AgentKind | undefined;
  readonly slice: Slice;
  readonly limit: number;
  readonly offset: number;
  readonly after: { readonly key: number; readonly agent_id: string } | null;
}

/** A page of a board from the record alone: as Redis has it, to the last digit. */
export const readBoard = async (db: Db, query: BoardQuery): Promise<BoardPage> => {
  const { kind, agents = 'agent', slice, limit, offset, after } = query;
  const rows = await db<RankedRow[]>`
    with ${ranked(db, slice, [kind])}
    select *
    from ranked
    where agents = ${agents}
      and (${after === null} or (key, agent_id) >
        (${after?.key ?? null}::float8, ${after?.agent_id ?? null}::uuid))
    order by place
    offset ${offset}
    limit ${limit + 1}`;
  const is_first = after === null && offset === 0;
  if (rows[0] === undefined && !is_first) {
    const { total } = await readBoard(db, { ...query, limit: 0, offset: 0, after: null });
    return { total, rows: [] };
  }
  return { total: rows[0]?.total ?? 0, rows: rows.map(rowOf) };
};

/** The first of some boards of a slice, for all kinds of agents; by one pass over its scores. */
export const readTops = async (
  db: Db,
  { slice, kinds, most }: { slice: Slice; kinds: readonly BoardName[]; most: number },
) => {
  const rows = await db<RankedRow[]>`
    with ${ranked(db, slice, kinds)} select * from ranked where place <= ${most} order by place`;
  return agent_kinds.flatMap((agents) =>
    kinds.map((kind) => {
      const own = rows.filter((row) => row.agents === agents && row.kind === kind);
      return { agents, kind, total: own[0]?.total ?? 0, rows: own.map(rowOf) };
    }),
  );
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

/** One more than the ranked agents of the agent's kind that won more, found by the index. */
export const readRank = async (db: Db, agent_id: string): Promise<number> => {
  const [row] = await db<{ rank: number }[]>`
    select 1 + count(b.agent_id)::integer as rank
    from (
      select
        ${kindColumn(db)} as kind,
        (select coalesce(sum(net), 0) from scores where agent_id = a.id) as net
      from agents a
      where a.id = ${agent_id}
    ) own
    left join board_nets b on b.kind = own.kind and b.net > own.net`;
  return row?.rank ?? 1;
};

/** How many of `board_nets` differ from the scores, for `npm run verify`. */
export const countWrongNets = (db: Db) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total
    from (${netsOf(db, db`true`)}) n
    full join board_nets b using (agent_id)
    where (n.kind, n.net) is distinct from (b.kind, b.net)`);

/** The resolved predictions of one agent in a category, or in all (null). */
export interface RecordRow {
  readonly category: string | null;
  readonly n: number;
  readonly correct: number;
  /** Sum of the Brier scores in billionths, as for the boards. */
  readonly brier: number;
  readonly brier_variance: number | null;
  readonly log_score: number | null;
  readonly baseline: number | null;
  readonly relative: number | null;
}

/** The row of all first, then the categories that have any. */
const readRows = (db: Db, agent_id: string) => db<RecordRow[]>`
  select
    category,
    count(*)::integer as n,
    (count(*) filter (where correct))::integer as correct,
    coalesce(sum(round(brier * 1e9)::bigint), 0)::bigint as brier,
    round(var_samp(brier::numeric), 9)::float8 as brier_variance,
    round(avg(log_score::numeric), 6)::float8 as log_score,
    round(avg(baseline::numeric), 3)::float8 as baseline,
    round(avg(relative::numeric), 3)::float8 as relative
  from scores
  where agent_id = ${agent_id}
  group by grouping sets ((), (category))
  order by category nulls first`;

/** `stated`: the sum of the stated percents. */
const readBins = (db: Db, agent_id: string) => db<
  { readonly bin: number; readonly n: number; readonly stated: number; readonly hits: number }[]
>`
  select
    least(stated / 1000, 9) as bin,
    count(*)::integer as n,
    sum(stated)::integer as stated,
    (count(*) filter (where hit))::integer as hits
  from scores
  where agent_id = ${agent_id}
  group by bin
  order by bin`;

/** Whether each was correct, in the order of resolution; UTC days with a prediction since 1970. */
const readRuns = (db: Db, agent_id: string) => db<
  { readonly results: readonly boolean[]; readonly days: readonly number[] }[]
>`
  select
    array(
      select correct from scores where agent_id = ${agent_id} order by resolved_at, prediction_id
    ) as results,
    array(
      select distinct (created_at at time zone 'UTC')::date - date '1970-01-01' as day
      from predictions
      where agent_id = ${agent_id}
      order by day
    ) as days`;

export const readRecord = async (db: Db, agent_id: string) => {
  const [rows, bins, [runs]] = await Promise.all([
    readRows(db, agent_id),
    readBins(db, agent_id),
    readRuns(db, agent_id),
  ]);
  return { rows: rows as readonly RecordRow[], bins, ...(runs ?? { results: [], days: [] }) };
};
export type AgentRecord = Awaited<ReturnType<typeof readRecord>>;
