export {
  type Bin,
  bin_count,
  calibrationError,
  type Interval,
  meanInterval,
  wilson,
} from './calibration.js';
export * from './rules.js';
export {
  baselineScore,
  brier,
  brier_convention,
  dayStreakOf,
  type ForecastScore,
  least_resolved,
  logScore,
  type Others,
  relativeScore,
  type Streak,
  scoreForecast,
  streakOf,
} from './score-rules.js';
export {
  countLedger,
  type LedgerRow,
  openAccount,
  postEntry,
  readAccount,
  readLedger,
  type Settlement,
  settleAccounts,
} from './store.js';
