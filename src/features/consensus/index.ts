export {
  errorsOf,
  type Fit,
  first_fit,
  fitAt,
  fitOf,
  measureCorrelation,
  type ResolvedQuestion,
} from './correlation.js';
export { readFits, readResolved } from './fits-store.js';
export { createFitting, fitToday } from './fitting.js';
export { createHeadlines } from './headlines.js';
export { createHistory, type History, makeCourse, thinCourse } from './history.js';
export {
  consensusTopic,
  createConsensusProjector,
  createLiveConsensus,
  type LiveConsensus,
  makeConsensusTopics,
  rebuildTallies,
  versionOf,
} from './live.js';
export { isNumber, placeOf, showFan } from './numbers.js';
export { deleteHourly, lockOldHourly } from './old-snapshots-store.js';
export { drawPicture, type PictureOf } from './picture.js';
export { createPool, logOdds, type Pool, type PoolForecast } from './pool.js';
export { type ConsensusParts, type HistoryParts, routes } from './routes.js';
export {
  type Consensus,
  chanceIn,
  computeConsensus,
  crowdWasRight,
  givenBy,
  meanGiven,
  shown,
} from './rules.js';
export type { Course } from './run.js';
export { makeRun, type Run, type RunShape, type TimedForecast } from './run.js';
export { consensus_schema, fan_schema } from './schema.js';
export { createSnapshotTaker, createSnapshotTimer } from './snapshots.js';
export {
  countAll,
  fieldsOf,
  mixField,
  movesConsensus,
  readCells,
  saidIn,
  tallyKey,
} from './tally.js';
