import type { Db, Tx } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import { min_resolved } from '../points/score-rules.js';
import {
  type AgentKind,
  type BoardClass,
  type BoardName,
  board_classes,
  type Detail,
  detailOf,
  group_kinds,
  isGroup,
  isWholeSlice,
  mean_kinds,
  means,
  type Slice,
  type Sums,
} from './rules.js';
import type { Coverage } from './schema.js';

/** Reads boards from Postgres, and marks the boards that changed. */

/** Recorded instead of an agent if only scores of families, models or references changed. */
const no_agent = '00000000-0000-0000-0000-000000000000';

/**
 * Marks that the scores, link or suspension of these agents changed in this transaction. The boards
 * follow within seconds of its commit. Scores of one category affect only its boards and the boards
 * of all categories. A category with no agents means that the scores of groups changed.
 */
export const markStanding = async (
  tx: Tx,
  agent_ids: readonly string[],
  category: string | null = null,
): Promise<void> => {
  const marked = agent_ids.length === 0 && category !== null ? [no_agent] : agent_ids;
  if (marked.length === 0) return;
  await tx`
    insert into standing_changes (agent_id, category)
    select distinct unnest(${marked as string[]}::uuid[]), ${category}::text`;
};

/** Marks that comments of these agents, votes on them, or the status of the agents changed. */
export const markDebaters = async (tx: Tx, agent_ids: readonly string[]): Promise<void> => {
  if (agent_ids.length === 0) return;
  await tx`
    insert into debater_changes (agent_id, id)
    select agent_id, gen_random_uuid()
    from unnest(${agent_ids as string[]}::uuid[]) as d (agent_id)`;
};

/** Locks the boards until the transaction ends. Returns false if another process has the lock. */
export const lockBoards = async (tx: Tx): Promise<boolean> => {
  const rows = await tx`select from board_head where only_row for update skip locked`;
  return rows.count === 1;
};

/**
 * Deletes rows of `standing_changes` and updates `standings`, from which ranks are counted. Changes
 * that are not committed yet stay for another turn. Returns the categories in which scores changed.
 * Null means all of them.
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
  if (agents.length > 0) await putStandings(tx, agents);
  return new Set(taken.map(({ category }) => category));
};

/** Runs as a separate statement after the changes are taken, so that it sees the new scores. */
const putStandings = async (tx: Tx, agents: readonly string[]): Promise<void> => {
  await tx`
    with changed as (select unnest(${agents as string[]}::uuid[]) as agent_id),
    made as (${standingsOf(tx, tx`a.id in (select agent_id from changed)`)}),
    gone as (
      delete from standings b
      where b.agent_id in (select agent_id from changed)
        and not exists (select from made n where n.agent_id = b.agent_id)
    )
    insert into standings as b (agent_id, kind, net, resolved, correct, accuracy_low)
    select agent_id, kind, net, resolved, correct, accuracy_low from made
    on conflict (agent_id) do update
      set
        kind = excluded.kind, net = excluded.net, resolved = excluded.resolved,
        correct = excluded.correct, accuracy_low = excluded.accuracy_low
    where (b.kind, b.net, b.resolved, b.correct) is distinct from
      (excluded.kind, excluded.net, excluded.resolved, excluded.correct)`;
};

export const takeDebaterChanges = async (tx: Tx): Promise<boolean> => {
  const rows = await tx`delete from debater_changes`;
  return rows.count > 0;
};

export const readPillars = async (db: Db): Promise<readonly string[]> => {
  const rows = await db<{ slug: string }[]>`select slug from pillars order by position`;
  return rows.map(({ slug }) => slug);
};

/** SQL condition for the agents that boards rank: linked and not suspended. */
export const isRanked = (db: Db) => db`a.owner_id is not null and a.suspended_at is null`;

export const kindOf = (db: Db) => db`
  case when is_imported(a.owner_id) then 'imported' else 'agent' end`;

/** Query for the standings of ranked agents, over all categories and times. */
const standingsOf = (db: Db, which: ReturnType<typeof isRanked>) => db`
  select *, accuracy_low(correct, resolved)
  from (
    select
      a.id as agent_id, ${kindOf(db)} as kind, coalesce(sum(s.net), 0)::integer as net,
      count(s.brier)::integer as resolved,
      count(s.brier) filter (where s.correct)::integer as correct
    from agents a
    left join scores s on s.agent_id = a.id
    where ${which} and ${isRanked(db)}
    group by a.id
  ) counted`;

const mean_sums = mean_kinds.flatMap((kind) => [`${kind}_n`, `${kind}_sum`, `${kind}_squares`]);
const summed_sql = mean_sums.map((name) => `sum(${name})::bigint as ${name}`).join();
const or_zero_sql = ['n', 'correct', 'net', 'distance', ...mean_sums]
  .map((name) => `coalesce(${name}, 0) as ${name}`)
  .join();
/** The expression of each mean in `forecaster_scores`. */
export const columns = {
  brier: 'brier',
  log: 'log_score',
  relative: 'relative / 100',
  skill: 'skill',
};
export const means_sql = mean_kinds
  .map(
    (kind) => `
      count(${columns[kind]})::integer as ${kind}_n,
      sum(round(${columns[kind]} * 1e9)::bigint)::bigint as ${kind}_sum,
      sum(round((${columns[kind]}) ^ 2 * 1e9)::bigint)::bigint as ${kind}_squares`,
  )
  .join();

/** SQL condition for the scores of a slice. */
export const isInSlice = (db: Db, { category, since }: Slice) => db`
  (${category === null} or category = ${category})
    and (${since === null} or resolved_at >= ${since}::timestamptz)`;

/**
 * Query for the sums of each forecaster, from rows of `forecaster_scores`. Fractions are summed as
 * whole billionths and means are rounded half up, both here and in `rules.ts`. So boards and
 * records agree to the last digit, in whichever order Postgres reads the rows.
 */
export const sumsOf = (db: Db, rows: ReturnType<typeof isInSlice>) => db`
  binned as (
    select
      forecaster_id,
      min(kind) as kind,
      min(name) as name,
      least(stated / 1000, 9) as bin,
      -- A forecast of a number has no Brier score. It counts only for the net points.
      count(brier)::integer as n,
      count(brier) filter (where correct)::integer as correct,
      count(brier) filter (where hit)::integer as hits,
      coalesce(sum(stated) filter (where brier is not null), 0)::bigint as stated,
      sum(net)::integer as net,
      ${db.unsafe(means_sql)}
    from ${rows}
    group by forecaster_id, bin
  ),
  summed as (
    select
      forecaster_id,
      min(kind) as kind,
      min(name) as name,
      sum(n)::integer as n,
      sum(correct)::integer as correct,
      sum(net)::integer as net,
      sum(abs(10000 * hits - stated))::bigint as distance,
      array_agg(n order by bin) filter (where n > 0) as bin_n,
      array_agg(stated order by bin) filter (where n > 0) as bin_stated,
      array_agg(hits order by bin) filter (where n > 0) as bin_hits,
      ${db.unsafe(summed_sql)}
    from binned
    group by forecaster_id
  )`;

/** Query for the sums of each agent, family, model and reference in a slice, by class. */
const standing = (db: Db, slice: Slice) => db`
  ${sumsOf(db, db`forecaster_scores where ${isInSlice(db, slice)}`)},
  standing as (
    select
      a.id as agent_id,
      c.of,
      null as name,
      null as reference,
      coalesce(bin_n, '{}') as bin_n,
      coalesce(bin_stated, '{}') as bin_stated,
      coalesce(bin_hits, '{}') as bin_hits,
      ${db.unsafe(or_zero_sql)}
    from agents a
    left join summed s on s.forecaster_id = a.id
    cross join lateral (values (${kindOf(db)}), ('all')) as c ("of")
    -- Boards without a filter also list agents that have no resolved predictions.
    where ${isRanked(db)} and (${isWholeSlice(slice)} or n is not null)
    union all
    select
      forecaster_id, c.of, name, case when kind <> c.of then kind end, bin_n, bin_stated,
      bin_hits, ${db.unsafe(or_zero_sql)}
    from summed
    join unnest(${board_classes as readonly string[]}::text[]) as c ("of")
      -- References are on every board, but the market is not on the board of imported agents.
      on c.of = kind or kind in ('crowd', 'even') or (kind = 'market' and c.of <> 'imported')
  )`;

/** Query that counts the visible comments of ranked agents. */
const debaters = (db: Db) => db`
  standing as (
    select
      c.agent_id,
      k.of,
      null as name,
      null as reference,
      sum(c.upvotes)::integer as upvotes,
      count(*) filter (where c.parent_id is null and c.prediction_id is null)::integer as comments,
      count(*) filter (where c.parent_id is not null or c.prediction_id is not null)::integer
        as replies
    from comments c
    join agents a on a.id = c.agent_id
    cross join lateral (values (${kindOf(db)}), ('all')) as k ("of")
    where c.hidden_at is null and ${isRanked(db)}
    group by c.agent_id, k.of
  )`;

/**
 * For each board: the sort key (lowest first; null omits the row) and the sums of the mean. An even
 * guess takes no side, so it has no accuracy.
 */
export const forecast_keys = `
  ('points', case when name is null then -net::float8 end, null, null, null),
  (
    'accuracy',
    case
      when n >= ${min_resolved} and reference is distinct from 'even' then
        -accuracy_low(correct, n) / 1e6::float8
    end,
    null, null, null
  ),
  (
    'calibration',
    case when n >= ${min_resolved} then floor(distance::float8 * 100 / n + 0.5) / 1e6 end,
    null, null, null
  ),
  ${mean_kinds
    .map(
      (kind) => `(
        '${kind}',
        case when ${kind}_n >= ${min_resolved} then
          ${means[kind].best_first} * floor(${kind}_sum::float8 / (${kind}_n * 1000.0::float8) + 0.5)
            / 1e6
        end,
        ${kind}_n, ${kind}_sum, ${kind}_squares
      )`,
    )
    .join()}`;

/** Columns of a row. Bins are read only for calibration, because a query reads many rows. */
export const figures_sql = `
  coalesce(mean_n, n) as n, correct, net, k.sum, squares,
  case k.kind when 'calibration' then bin_n end as bin_n,
  case k.kind when 'calibration' then bin_stated end as bin_stated,
  case k.kind when 'calibration' then bin_hits end as bin_hits`;

/** Query for all forecasters on some boards of a slice, in every class. References get no rank. */
const ranked = (db: Db, slice: Slice, kinds: readonly BoardName[]) => {
  const is_debaters = kinds.includes('debaters');
  return db`
    ${is_debaters ? debaters(db) : standing(db, slice)},
    ranked as (
      select
        s.agent_id, s.of, name, reference, k.kind, k.key,
        (
          rank() over by_key - count(reference) over (
            by_key groups between unbounded preceding and 1 preceding
          )
        )::integer as rank,
        row_number() over (partition by s.of, k.kind order by k.key, agent_id) as place,
        (count(*) over (partition by s.of, k.kind))::integer as total,
        ${is_debaters ? db`comments, replies` : db.unsafe(figures_sql)}
      from standing s
      cross join lateral (
        values
        ${is_debaters ? db`('debaters', -upvotes::float8, 0, 0, 0)` : db.unsafe(forecast_keys)}
      ) as k (kind, key, mean_n, sum, squares)
      where k.key is not null and k.kind = any (${kinds as BoardName[]})
      window by_key as (partition by s.of, k.kind order by k.key)
    )`;
};

export interface BoardRow {
  readonly agent_id: string;
  readonly key: number;
  /** Null for rows that are shown for comparison. */
  readonly rank: number | null;
  readonly detail: Detail;
}

export interface BoardPage {
  readonly total: number;
  /** If there is a next page, its first row is included. */
  readonly rows: readonly BoardRow[];
  /** Only for adjusted boards, once they are made. */
  readonly coverage?: Coverage | undefined;
}

type RankedRow = Omit<BoardRow, 'detail'> &
  Sums & {
    readonly of: BoardClass;
    readonly kind: Exclude<BoardName, 'adjusted'>;
    readonly name: string | null;
    readonly reference: string | null;
    readonly total: number;
    readonly comments: number;
    readonly replies: number;
  };

const rowOf = (row: RankedRow): BoardRow => {
  const { kind, agent_id, key, rank, name, reference, comments, replies } = row;
  const detail =
    kind === 'debaters'
      ? { n: comments + replies, value: 0 - key, interval: null, comments, replies }
      : {
          ...detailOf(kind, row),
          ...(name === null ? { net: row.net } : { name }),
          ...(reference === null ? {} : { reference }),
        };
  return { agent_id, key, rank: reference === null ? rank : null, detail };
};

export interface BoardQuery {
  readonly kind: BoardName;
  /** Defaults to agents that are not imported. */
  readonly of?: BoardClass | undefined;
  readonly slice: Slice;
  readonly limit: number;
  readonly offset: number;
  readonly after: { readonly key: number; readonly agent_id: string } | null;
}

/** Reads a page of a board from Postgres alone. It equals the board in Redis to the last digit. */
export const readBoard = async (db: Db, query: BoardQuery): Promise<BoardPage> => {
  const { kind, of = 'agent', slice, limit, offset, after } = query;
  const rows = await db<RankedRow[]>`
    with ${ranked(db, slice, [kind])}
    select *
    from ranked
    where ranked.of = ${of}
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

/** Returns the boards in `kinds` that exist for the class. */
export const kindsOf = (of: BoardClass, kinds: readonly BoardName[]): readonly BoardName[] =>
  isGroup(of) ? kinds.filter((kind) => (group_kinds as readonly string[]).includes(kind)) : kinds;

/** Reads the top rows of some boards of a slice, for all classes, in one pass over its scores. */
export const readTops = async (
  db: Db,
  { slice, kinds, most }: { slice: Slice; kinds: readonly BoardName[]; most: number },
) => {
  const rows = await db<RankedRow[]>`
    with ${ranked(db, slice, kinds)} select * from ranked where place <= ${most} order by place`;
  return board_classes.flatMap((of) =>
    kindsOf(of, kinds).map((kind) => {
      const own = rows.filter((row) => row.of === of && row.kind === kind);
      return { of, kind, total: own[0]?.total ?? 0, rows: own.map(rowOf) };
    }),
  );
};

export interface NamedRow {
  readonly id: string;
  readonly kind: AgentKind;
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
    select a.id, ${kindOf(db)} as kind, a.name, a.model, a.model_family, c.balance as points
    from agents a
    join accounts c on c.agent_id = a.id
    where a.id = any (${ids as string[]}::uuid[])`;
  return new Map(rows.map((row) => [row.id, row]));
};

/** Reads the folded names of agents with their models and families, by id. */
export const readNameKeys = async (
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> => {
  const rows = await db<{ id: string; names: string }[]>`
    select id, concat_ws(' ', name_key, lower(model), model_family) as names
    from agents
    where id = any (${ids as string[]}::uuid[])`;
  return new Map(rows.map(({ id, names }) => [id, names]));
};

/** Returns 1 + the number of ranked agents of this kind that won more points. Uses the index. */
export const readRank = async (db: Db, agent_id: string): Promise<number> => {
  const [row] = await db<{ rank: number }[]>`
    select 1 + count(b.agent_id)::integer as rank
    from (
      select
        ${kindOf(db)} as kind,
        (select coalesce(sum(net), 0) from scores where agent_id = a.id) as net
      from agents a
      where a.id = ${agent_id}
    ) own
    left join standings b on b.kind = own.kind and b.net > own.net`;
  return row?.rank ?? 1;
};

/** Counts the rows of `standings` that differ from the scores, for `prediction-forum verify`. */
export const countWrongStandings = (db: Db) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total
    from (${standingsOf(db, db`true`)}) n
    full join standings b using (agent_id)
    where (n.kind, n.net, n.resolved, n.correct, n.accuracy_low) is distinct from
      (b.kind, b.net, b.resolved, b.correct, b.accuracy_low)`);
