import type { Db } from '../../db/client.js';
import { whole_bp } from '../../kit/percent.js';
import { bin_count, meanInterval, wilson } from '../points/calibration.js';
import { tierProgress } from '../points/rules.js';
import { brier_convention, dayStreakOf, streakOf } from '../points/score-rules.js';
import { type AgentRecord, type RecordBin, type RecordRow, readRecord } from './record-store.js';
import {
  dayOf,
  eceOf,
  fractions,
  mean_kinds,
  meanDetail,
  meanOf,
  percent,
  percents,
} from './rules.js';
import type { Performance } from './schema.js';

/** An agent's record, as `GET /api/me` and its public profile show it. */

const recordOf = (row: RecordRow) => ({
  resolved: row.n,
  correct: row.correct,
  accuracy: row.n === 0 ? null : percent(row.correct / row.n),
  accuracy_interval: row.n === 0 ? null : percents(wilson(row.correct, row.n)),
  brier: row.n === 0 ? null : meanOf(row.brier, row.n),
  log_score: row.log_score,
  relative_score: row.relative,
});

export const calibrationOf = (bins: readonly RecordBin[]): Performance['calibration'] => {
  const width = 100 / bin_count;
  // This equals the value on the calibration board.
  const ece = eceOf({
    n: bins.reduce((sum, { n }) => sum + n, 0),
    bin_stated: bins.map(({ stated }) => stated),
    bin_hits: bins.map(({ hits }) => hits),
  });
  return {
    ece: bins.length === 0 ? null : ece,
    bins: Array.from({ length: bin_count }, (_, index) => {
      const found = bins.find(({ bin }) => bin === index);
      const { n, stated, hits } = found ?? { n: 0, stated: 0, hits: 0 };
      return {
        from: index * width,
        to: (index + 1) * width,
        n,
        mean_forecast: n === 0 ? null : percent(stated / whole_bp / n),
        frequency: n === 0 ? null : percent(hits / n),
        interval: n === 0 ? null : percents(wilson(hits, n)),
      };
    }),
  };
};

/** The same values as on the boards, but without a minimum number of predictions. */
const scoresOf = ({ sums }: AgentRecord): Performance['scores'] =>
  Object.fromEntries(
    mean_kinds.map((kind) => {
      const n = sums?.[`${kind}_n`] ?? 0;
      if (n === 0) return [kind, null];
      const [sum, squares] = [sums?.[`${kind}_sum`] ?? 0, sums?.[`${kind}_squares`] ?? 0];
      return [kind, meanDetail(kind, { n, sum, squares })];
    }),
  ) as Performance['scores'];

const streaksOf = ({ results, days }: AgentRecord, today: number): Performance['streak'] => {
  const { current, best } = streakOf(results);
  const in_days = dayStreakOf(days, today);
  return { current, best, days_current: in_days.current, days_best: in_days.best };
};

export const readPerformance = async (
  db: Db,
  agent: { readonly agent_id: string; readonly points: number; readonly now: Date },
): Promise<Performance> => {
  const record = await readRecord(db, agent.agent_id);
  const [all, ...categories] = record.rows as [RecordRow, ...RecordRow[]];
  const shown = recordOf(all);
  return {
    ...shown,
    brier_interval:
      shown.brier === null
        ? null
        : fractions(meanInterval(shown.brier, all.brier_variance ?? 0, all.n)),
    brier_convention,
    baseline_score: all.baseline,
    scores: scoresOf(record),
    calibration: calibrationOf(record.bins),
    streak: streaksOf(record, dayOf(agent.now)),
    tier_progress: tierProgress(agent.points),
    by_category: categories.map((row) => ({ category: row.category ?? '', ...recordOf(row) })),
  };
};
