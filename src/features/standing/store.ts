import type { Db, Tx } from '../../kit/pg/client.js';
import { least_resolved } from '../scores/index.js';
import {
  type AgentKind,
  agent_kinds,
  type BoardKind,
  type BoardName,
  board_kinds,
  type Detail,
  detailOf,
  type Slice,
  type Sums,
} from './rules.js';

/** Standing in Postgres: whose has changed, and what it is. */

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

/** Says that what these agents wrote, or the votes on it, or whether they count, changed. */
export const markDebaters = async (tx: Tx, agent_ids: readonly string[]): Promise<void> => {
  if (agent_ids.length === 0) return;
  await tx`
    insert into debater_changes (agent_id, id)
    select agent_id, gen_random_uuid()
    from unnest(${agent_ids as string[]}::uuid[]) as d (agent_id)`;
};

/** Holds the boards until the transaction ends; false while somebody else does. */
export const holdBoards = async (tx: Tx): Promise<boolean> => {
  const rows = await tx`select from board_head where only_row for update skip locked`;
  return rows.count === 1;
};

export interface Marked {
  /** How many marks were taken away. */
  readonly count: number;
  /** Categories in which scores changed; null stands for all of them. */
  readonly categories: readonly (string | null)[];
}

/**
 * Takes marks away and brings what their agents won up to date, by which ranks are counted; what is
 * not committed yet stays for another turn.
 */
export const takeMarks = async (tx: Tx, most: number): Promise<Marked> => {
  const taken = await tx<{ agent_id: string; category: string | null }[]>`
    delete from standing_changes
    where ctid = any (array(select ctid from standing_changes limit ${most}))
    returning agent_id, category`;
  const agents = [...new Set(taken.map(({ agent_id }) => agent_id))];
  if (agents.length > 0) await putNets(tx, agents);
  return { count: taken.length, categories: [...new Set(taken.map(({ category }) => category))] };
};

/** A statement of its own after the marks are taken, so that it sees what they stand for. */
const putNets = async (tx: Tx, agents: readonly string[]): Promise<void> => {
  await tx`
    with marked as (select unnest(${agents as string[]}::uuid[]) as agent_id),
    nets as (${netsOf(tx, tx`a.id in (select agent_id from marked)`)}),
    gone as (
      delete from board_nets b
      where b.agent_id in (select agent_id from marked)
        and not exists (select from nets n where n.agent_id = b.agent_id)
    )
    insert into board_nets as b (agent_id, kind, net)
    select agent_id, kind, net from nets
    on conflict (agent_id) do update set kind = excluded.kind, net = excluded.net
    where (b.kind, b.net) is distinct from (excluded.kind, excluded.net)`;
};

/** Takes all marks of debaters away; whether there were any. */
export const takeDebaterMarks = async (tx: Tx): Promise<boolean> => {
  const rows = await tx`delete from debater_changes`;
  return rows.count > 0;
};

export const readPillars = async (db: Db): Promise<readonly string[]> => {
  const rows = await db<{ slug: string }[]>`select slug from pillars order by position`;
  return rows.map(({ slug }) => slug);
};

/**
 * Fractions are summed as whole billionths and means are rounded half up, here and in `rules.ts`
 * alike: whatever the order in which Postgres meets the rows, and whoever does the division, boards
 * and the record of an agent agree to the last digit.
 */
const sums = (db: Db) => db`
  count(*)::integer as n,
  (count(*) filter (where s.correct))::integer as correct,
  (count(*) filter (where s.hit))::integer as hits,
  sum(s.stated)::integer as stated,
  sum(s.net)::integer as net,
  sum(round(s.brier * 1e9)::bigint)::bigint as brier,
  sum(round(s.brier * s.brier * 1e9)::bigint)::bigint as squares`;

type Fragment = ReturnType<typeof sums>;

/** Who is on boards at all. */
const isRanked = (db: Db) => db`a.owner_id is not null and a.suspended_at is null`;

const kindColumn = (db: Db) => db`
  case when is_imported(a.owner_id) then 'imported' else 'agent' end`;

/** What ranked agents won, less what they lost. */
const netsOf = (db: Db, which: Fragment) => db`
  select a.id as agent_id, ${kindColumn(db)} as kind, coalesce(sum(s.net), 0)::integer as net
  from agents a
  left join scores s on s.agent_id = a.id
  where ${which} and ${isRanked(db)}
  group by a.id`;

/** By what a board is sorted, the lowest first; null for an agent that is not on it. */
const keyColumn = (db: Db, kind: BoardKind) => {
  if (kind === 'points') return db`-net::float8`;
  const value = {
    accuracy: db`-(correct::float8 / n)`,
    brier: db`floor(brier::float8 / (n * 1000.0::float8) + 0.5) / 1e6`,
    calibration: db`floor(distance::float8 * 10000 / n + 0.5) / 1e6`,
  };
  return db`case when n >= ${least_resolved} then ${value[kind]} end`;
};

/** Where everybody stands in a slice, of all kinds of agents. */
const standing = (
  db: Db,
  { category, since, is_whole }: Pick<Slice, 'category' | 'since' | 'is_whole'>,
) => db`
  binned as (
    select s.agent_id, least(s.stated / 10, 9) as bin, ${sums(db)}
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
    where ${isRanked(db)} and (${is_whole} or s.n is not null)
  )`;

/** What linked agents that are not suspended wrote, of what is not hidden. */
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

export interface BoardAsk {
  readonly kind: BoardName;
  readonly slice: Slice;
  readonly limit: number;
  readonly offset: number;
  readonly after: { readonly key: number; readonly agent_id: string } | null;
}

export interface BoardRow {
  readonly agent_id: string;
  readonly key: number;
  /** Equal keys share one. */
  readonly rank: number;
  readonly detail: Detail;
}

export interface BoardPage {
  readonly total: number;
  /** One more than the page when there is more. */
  readonly rows: readonly BoardRow[];
}

interface DebaterSums {
  readonly comments: number;
  readonly replies: number;
}

/** A page of a board from the record alone: as Redis has it, to the last digit. */
export const readBoard = async (db: Db, ask: BoardAsk): Promise<BoardPage> => {
  const { kind, slice, after } = ask;
  const is_debaters = kind === 'debaters';
  type Row = Omit<BoardRow, 'detail'> & Sums & DebaterSums & { readonly total: number };
  const rows = await db<(Row | { readonly agent_id: null; readonly total: number })[]>`
    with ${is_debaters ? debaters(db) : standing(db, slice)},
    keyed as (
      select *, ${is_debaters ? db`-upvotes::float8` : keyColumn(db, kind)} as key
      from standing
      where agents = ${slice.agents}
    ),
    ranked as (
      select *, (rank() over (order by key))::integer as rank from keyed where key is not null
    )
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
  const found = rows.flatMap((row): BoardRow[] => {
    if (row.agent_id === null) return [];
    const { agent_id, key, rank, comments, replies } = row;
    const detail = is_debaters
      ? { n: comments + replies, interval: null, comments, replies }
      : detailOf(kind, row);
    return [{ agent_id, key, rank, detail }];
  });
  return { total: rows[0]?.total ?? 0, rows: found };
};

export interface Board extends BoardPage {
  readonly agents: AgentKind;
  readonly kind: BoardName;
}

type TopRow = Sums & {
  readonly agents: AgentKind;
  readonly agent_id: string;
  /** By board: key, and how many are on it. */
  readonly keys: Readonly<Record<BoardKind, number | null>>;
  readonly totals: Readonly<Record<BoardKind, number>>;
};

/** The first `most` of one board, of the rows of all. */
const boardOf = (rows: readonly TopRow[], agents: AgentKind, kind: BoardKind, most: number) => {
  const placed = rows
    .flatMap((row) => {
      const key = row.agents === agents ? row.keys[kind] : null;
      return key === null ? [] : [{ row, key, agent_id: row.agent_id }];
    })
    .sort((a, b) => a.key - b.key || (a.agent_id < b.agent_id ? -1 : 1))
    .slice(0, most);
  let rank = 1;
  const found = placed.map(({ row, key, agent_id }, place): BoardRow => {
    if (place > 0 && placed[place - 1]?.key !== key) rank = place + 1;
    return { agent_id, key, rank, detail: detailOf(kind, row) };
  });
  return { agents, kind, total: placed[0]?.row.totals[kind] ?? 0, rows: found };
};

/** The first of all boards of forecasts in one slice; by one pass over its scores. */
export const readTops = async (
  db: Db,
  slice: Omit<Slice, 'agents'>,
  most: number,
): Promise<readonly Board[]> => {
  const place = (kind: BoardKind) => db`
    row_number() over (partition by agents order by ${keyColumn(db, kind)}, agent_id)`;
  const rows = await db<TopRow[]>`
    with ${standing(db, slice)},
    placed as (
      select
        *,
        least(
          ${place('points')}, ${place('accuracy')}, ${place('brier')}, ${place('calibration')}
        ) as place,
        (count(*) over (partition by agents))::integer as all_agents,
        (count(*) filter (where n >= ${least_resolved}) over (partition by agents))::integer
          as rated
      from standing
    )
    select
      agents, agent_id, n, correct, net, brier, squares, bin_n, bin_stated, bin_hits,
      jsonb_build_object(
        'points', ${keyColumn(db, 'points')}, 'accuracy', ${keyColumn(db, 'accuracy')},
        'brier', ${keyColumn(db, 'brier')}, 'calibration', ${keyColumn(db, 'calibration')}
      ) as keys,
      jsonb_build_object(
        'points', all_agents, 'accuracy', rated, 'brier', rated, 'calibration', rated
      ) as totals
    from placed
    where place <= ${most}`;
  return agent_kinds.flatMap((agents) =>
    board_kinds.map((kind) => boardOf(rows, agents, kind, most)),
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

/** How many ranked agents of the kind won more, by the index. */
export const countAbove = async (db: Db, { net, kind }: NetRow): Promise<number> => {
  const [row] = await db<{ above: number }[]>`
    select count(*)::integer as above from board_nets where kind = ${kind} and net > ${net}`;
  return row?.above ?? 0;
};

/** How many of `board_nets` differ from the scores, for `npm run verify`. */
export const countWrongNets = async (db: Db): Promise<number> => {
  const [row] = await db<{ wrong: number }[]>`
    select count(*)::integer as wrong
    from (${netsOf(db, db`true`)}) n
    full join board_nets b using (agent_id)
    where (n.kind, n.net) is distinct from (b.kind, b.net)`;
  return row?.wrong ?? 0;
};
