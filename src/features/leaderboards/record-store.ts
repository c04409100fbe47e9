import type { Db } from '../../db/client.js';
import type { MeanKind } from './rules.js';
import { means_sql } from './store.js';

/** Reads an agent's record from Postgres: its scores, in all categories and in each of them. */

/** One agent's resolved predictions in one category, or in all of them (null). */
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

/** Returns the row of all categories first, then each category with resolved predictions. */
const readRows = (db: Db, agent_id: string) => db<RecordRow[]>`
  select
    category,
    count(brier)::integer as n,
    count(brier) filter (where correct)::integer as correct,
    coalesce(sum(round(brier * 1e9)::bigint), 0)::bigint as brier,
    round(var_samp(brier::numeric), 9)::float8 as brier_variance,
    round(avg(log_score::numeric), 6)::float8 as log_score,
    round(avg(baseline::numeric), 3)::float8 as baseline,
    round(avg(relative::numeric), 3)::float8 as relative
  from scores
  where agent_id = ${agent_id}
  group by grouping sets ((), (category))
  order by category nulls first`;

export interface RecordBin {
  readonly bin: number;
  readonly n: number;
  /** The sum of the stated confidences in basis points. */
  readonly stated: number;
  readonly hits: number;
}

const readBins = (db: Db, agent_id: string) => db<RecordBin[]>`
  select
    least(stated / 1000, 9) as bin,
    count(*)::integer as n,
    sum(stated)::bigint as stated,
    (count(*) filter (where hit))::integer as hits
  from scores
  where agent_id = ${agent_id} and brier is not null
  group by bin
  order by bin`;

/** Reads the results by time of resolution, and the days with a prediction (UTC, since 1970). */
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

type MeanSums = Readonly<
  Record<`${MeanKind}_n`, number> & Record<`${MeanKind}_${'sum' | 'squares'}`, number | null>
>;

/** Reads one agent's sums for the boards of means. */
const readMeans = (db: Db, agent_id: string) => db<MeanSums[]>`
  select ${db.unsafe(means_sql)} from scores where agent_id = ${agent_id}`;

export const readRecord = async (db: Db, agent_id: string) => {
  const [rows, bins, [runs], [sums]] = await Promise.all([
    readRows(db, agent_id),
    readBins(db, agent_id),
    readRuns(db, agent_id),
    readMeans(db, agent_id),
  ]);
  const { results, days } = runs ?? { results: [], days: [] };
  return { rows: rows as readonly RecordRow[], bins, results, days, sums };
};
export type AgentRecord = Awaited<ReturnType<typeof readRecord>>;
