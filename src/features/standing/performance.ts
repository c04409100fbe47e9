import type { Db } from '../../kit/pg/client.js';
import { tierProgress } from '../points/index.js';
import {
  bin_count,
  brier_convention,
  calibrationError,
  dayStreakOf,
  meanInterval,
  streakOf,
  wilson,
} from '../scores/index.js';
import { type AgentRecord, type RecordRow, readRecord } from './record-store.js';
import { brierOf, dayOf, eceOf, fraction, fractions, percent, percents } from './rules.js';
import type { Performance } from './schema.js';

/** The record of an agent as `GET /api/me` and its public profile tell it. */

const accuracyOf = ({ n, correct }: Pick<RecordRow, 'n' | 'correct'>) => ({
  resolved: n,
  correct,
  accuracy: n === 0 ? null : percent(correct / n),
  accuracy_interval: n === 0 ? null : percents(wilson(correct, n)),
});

/** As the board has it. */
const eceOfBins = (bins: AgentRecord['bins']): number =>
  eceOf({
    n: bins.reduce((sum, { n }) => sum + n, 0),
    bin_stated: bins.map(({ stated }) => stated),
    bin_hits: bins.map(({ hits }) => hits),
  });

const calibrationOf = ({ bins }: AgentRecord): Performance['calibration'] => {
  const all = Array.from({ length: bin_count }, (_, index) => {
    const found = bins.find(({ bin }) => bin === index);
    return { n: found?.n ?? 0, stated: (found?.stated ?? 0) / 100, hits: found?.hits ?? 0 };
  });
  const error = calibrationError(all);
  const width = 100 / bin_count;
  return {
    ece: bins.length === 0 ? null : eceOfBins(bins),
    ece_interval: error === null ? null : fractions(error.interval),
    mce: error === null ? null : fraction(error.mce),
    rmsce: error === null ? null : fraction(error.rmsce),
    bins: all.map(({ n, stated, hits }, index) => ({
      from: index * width,
      to: (index + 1) * width,
      n,
      mean_forecast: n === 0 ? null : percent(stated / n),
      frequency: n === 0 ? null : percent(hits / n),
      interval: n === 0 ? null : percents(wilson(hits, n)),
    })),
  };
};

const streaksOf = ({ results, days }: AgentRecord, today: number): Performance['streak'] => {
  const { current, best } = streakOf([...results].map((result) => result === '1'));
  const in_days = dayStreakOf(days, today);
  return { current, best, days_current: in_days.current, days_best: in_days.best };
};

const nothing: RecordRow = {
  category: null,
  n: 0,
  correct: 0,
  brier: 0,
  brier_variance: null,
  log_score: null,
  baseline: null,
  relative: null,
};

export interface PerformanceAsk {
  readonly agent_id: string;
  readonly points: number;
  readonly now: Date;
}

export const readPerformance = async (db: Db, ask: PerformanceAsk): Promise<Performance> => {
  const record = await readRecord(db, ask.agent_id);
  const [all = nothing, ...categories] = record.rows;
  const { brier_variance, n } = all;
  const brier = n === 0 ? null : brierOf(all);
  return {
    ...accuracyOf(all),
    brier,
    brier_interval: brier === null ? null : fractions(meanInterval(brier, brier_variance ?? 0, n)),
    brier_convention,
    log_score: all.log_score,
    baseline_score: all.baseline,
    relative_score: all.relative,
    calibration: calibrationOf(record),
    streak: streaksOf(record, dayOf(ask.now)),
    tier_progress: tierProgress(ask.points),
    by_category: categories.map((row) => ({
      category: row.category ?? '',
      ...accuracyOf(row),
      brier: brierOf(row),
      log_score: row.log_score,
      relative_score: row.relative,
    })),
  };
};
