import type { Db } from '../../db/client.js';
import { min_resolved } from '../points/score-rules.js';
import {
  type BoardClass,
  type BoardKind,
  board_kinds,
  detailOf,
  isWholeSlice,
  type MeanKind,
  meanValue,
  type Slice,
  type Sums,
} from './rules.js';
import {
  type BoardRow,
  columns,
  figures_sql,
  forecast_keys,
  isInSlice,
  kindsOf,
  sumsOf,
} from './store.js';

/**
 * Reads the scores of a few forecasters by index: their figures on all boards of a slice, and their
 * means over time.
 */

interface Chosen {
  readonly of: BoardClass;
  readonly slice: Slice;
  /** At most a page of them. */
  readonly rows: readonly BoardRow[];
}

/** Query for the scores of these rows. Agents are found by id, groups and references by name. */
const scoresOf = (db: Db, { of, slice, rows }: Chosen) => {
  const named = rows.filter(({ detail }) => detail.name != null);
  const agents = rows.filter(({ detail }) => detail.name == null).map((row) => row.agent_id);
  const kinds = [...new Set(named.map(({ detail }) => detail.reference ?? of))];
  const names = named.map(({ detail }) => detail.name ?? '');
  return db`
    select *
    from forecaster_scores
    where kind is null and forecaster_id = any (${agents}::uuid[]) and ${isInSlice(db, slice)}
    union all
    select *
    from forecaster_scores
    where kind is not null and kind = any (${kinds}::text[]) and name = any (${names}::text[])
      and ${isInSlice(db, slice)}`;
};

/** A forecaster's values by board. Boards on which it has no place are missing. */
export type Figures = Partial<Record<BoardKind | 'adjusted', number>>;

/**
 * Reads the values of these rows on every board of the class and slice, by id, from their scores.
 * Used if Redis does not have them.
 */
export const readFigures = async (
  db: Db,
  chosen: Chosen,
): Promise<ReadonlyMap<string, Figures>> => {
  const { of, slice, rows } = chosen;
  const kinds = kindsOf(of, board_kinds) as readonly BoardKind[];
  const found = await db<(Sums & { id: string; kind: BoardKind })[]>`
    with wanted as (${scoresOf(db, chosen)}), ${sumsOf(db, db`wanted`)}
    select forecaster_id as id, k.kind, ${db.unsafe(figures_sql)}
    from (select *, kind as reference from summed) s
    cross join lateral (values ${db.unsafe(forecast_keys)}) as k (kind, key, mean_n, sum, squares)
    where k.key is not null and k.kind = any (${kinds as string[]})`;
  const figures = new Map<string, Figures>();
  const put = (id: string, kind: keyof Figures, value: number): void => {
    figures.set(id, { ...figures.get(id), [kind]: value });
  };
  if (isWholeSlice(slice)) {
    // Agents without resolved predictions are on the board of points.
    for (const { agent_id, detail } of rows) if (detail.name == null) put(agent_id, 'points', 0);
  }
  for (const row of found) put(row.id, row.kind, detailOf(row.kind, row).value);
  return figures;
};

const max_moments = 60;

export interface RunningMean {
  readonly id: string;
  /** `crowd` or `even` for these references. */
  readonly reference: string | null;
  readonly at: Date;
  /** Scored predictions until then. */
  readonly n: number;
  readonly value: number;
}

/**
 * Reads the means of these rows at up to 60 moments at which questions closed, oldest first. An
 * outcome counts from the close of its question, because imports record many outcomes at once. The
 * last moment is the newest close, and the others are evenly spaced among the closes. Means of
 * fewer than ten predictions are left out, as on the boards.
 */
export const readRunningMeans = async (
  db: Db,
  by: MeanKind,
  chosen: Chosen,
): Promise<readonly RunningMean[]> => {
  const found = await db<(Omit<RunningMean, 'value'> & { sum: number })[]>`
    with placed as (
      select
        forecaster_id,
        kind,
        ended_at,
        round(${db.unsafe(columns[by])} * 1e9)::bigint as score,
        dense_rank() over (order by ended_at desc) - 1 as back
      from (${scoresOf(db, chosen)}) s
      join (select id, least(closed_at, closes_at) as ended_at from questions) q
        on q.id = s.question_id
      where ${db.unsafe(columns[by])} is not null
    ),
    stepped as (
      select
        forecaster_id,
        min(kind) as kind,
        back / (select max(back) / ${max_moments}::integer + 1 from placed) as step,
        max(ended_at) as at,
        count(*) as n,
        sum(score) as sum
      from placed
      group by forecaster_id, step
    ),
    running as (
      select
        forecaster_id as id,
        case when kind in ('crowd', 'even') then kind end as reference,
        max(at) over (partition by step) as at,
        (sum(n) over own)::integer as n,
        (sum(sum) over own)::bigint as sum
      from stepped
      window own as (partition by forecaster_id order by step desc)
    )
    select * from running where n >= ${min_resolved} order by at`;
  return found.map(({ sum, ...row }) => ({ ...row, value: meanValue(by, sum, row.n) }));
};
