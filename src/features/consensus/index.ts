export { createHistory, type History, makeCourse, thinCourse } from './history.js';
export {
  consensusTopic,
  createConsensusProjector,
  createLiveConsensus,
  type LiveConsensus,
  makeConsensusTopics,
} from './live.js';
export { drawPicture, type PictureOf } from './picture.js';
export { type ConsensusParts, type HistoryParts, routes } from './routes.js';
export { type Consensus, computeConsensus, givenBy, meanGiven, shown } from './rules.js';
export type { Course } from './run.js';
export { makeRun, type Run, type RunShape, type TimedForecast } from './run.js';
export { consensus_schema } from './schema.js';
export { createSnapshotTaker, createSnapshotTimer } from './snapshots.js';
export { readConsensus } from './store.js';
export { cellField, countAll, readCells, tallyKey } from './tally.js';
