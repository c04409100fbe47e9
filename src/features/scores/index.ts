export {
  type Bin,
  bin_count,
  calibrationError,
  type Interval,
  meanInterval,
  wilson,
} from './calibration.js';
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
  type ScoreAsk,
  type Streak,
  scoreForecast,
  streakOf,
} from './rules.js';
