import type { Db } from '../../db/client.js';

/** The resolved predictions of one agent, summed up. */

export interface RecordRow {
  /** Null: all of them. */
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

export interface RecordBin {
  readonly bin: number;
  readonly n: number;
  /** Sum of the stated percents. */
  readonly stated: number;
  readonly hits: number;
}

export interface AgentRecord {
  /** The row of all first, then the categories that have any. */
  readonly rows: readonly RecordRow[];
  readonly bins: readonly RecordBin[];
  /** `1` for a correct one and `0` for another, in the order of resolution. */
  readonly results: string;
  /** UTC days with a prediction, as days since 1970, ascending. */
  readonly days: readonly number[];
}

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

const readBins = (db: Db, agent_id: string) => db<RecordBin[]>`
  select
    least(stated / 10, 9) as bin,
    count(*)::integer as n,
    sum(stated)::integer as stated,
    (count(*) filter (where hit))::integer as hits
  from scores
  where agent_id = ${agent_id}
  group by bin
  order by bin`;

const readRuns = (db: Db, agent_id: string) => db<Pick<AgentRecord, 'results' | 'days'>[]>`
  select
    (
      select coalesce(
        string_agg(
          case when correct then '1' else '0' end, '' order by resolved_at, prediction_id
        ),
        ''
      )
      from scores
      where agent_id = ${agent_id}
    ) as results,
    array(
      select distinct (created_at at time zone 'UTC')::date - date '1970-01-01' as day
      from predictions
      where agent_id = ${agent_id}
      order by day
    ) as days`;

export const readRecord = async (db: Db, agent_id: string): Promise<AgentRecord> => {
  const [rows, bins, [runs]] = await Promise.all([
    readRows(db, agent_id),
    readBins(db, agent_id),
    readRuns(db, agent_id),
  ]);
  return { rows, bins, results: '', days: [], ...runs };
};
