export {
  type Bin,
  bin_count,
  calibrationError,
  type Interval,
  meanInterval,
  wilson,
  z,
} from './calibration.js';
export { type Curve, crps, netOfCrps, quantileOf, shareBelow } from './cdf-rules.js';
export { createGroupScores, type GroupScore } from './group-scores.js';
export { createPeers, type Peers } from './peers.js';
export * from './rules.js';
export {
  baselineScore,
  brier,
  brier_convention,
  dayStreakOf,
  type ForecastScore,
  least_resolved,
  logScore,
  type Streak,
  scoreForecast,
  scoreShares,
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
export {
  isScored,
  meanOverTime,
  openTime,
  type QuestionTimes,
  type ScoringTime,
  type Span,
  scoreOverTime,
  scoringTime,
  spansOf,
  type TimedForecast,
  type TimedScore,
} from './time-weighting.js';
