import { routes as history_routes } from './history-routes.js';
import { routes as consensus_routes } from './routes.js';

export { type Course, makeCourse, thinCourse } from './course.js';
export { createHistory, type History } from './history.js';
export type { HistoryParts } from './history-routes.js';
export {
  consensusTopic,
  createLiveConsensus,
  type LiveConsensus,
  makeConsensusTopics,
} from './live.js';
export { drawPicture, type PictureOf } from './picture.js';
export { createConsensusProjector } from './projector.js';
export type { ConsensusParts } from './routes.js';
export {
  type Consensus,
  computeConsensus,
  extremize,
  type Family,
  givenBy,
  leadingOf,
  logOdds,
  mean,
  meanGiven,
  type QuestionShape,
  quantile,
  share,
  shown,
} from './rules.js';
export { makeRun, type Run, type RunShape, type Stated } from './run.js';
export { consensus_schema } from './schema.js';
export { createSnapshotTaker, createSnapshotTimer } from './snapshots.js';
export { readConsensus } from './store.js';
export { cellField, countAll, readCells, tallyKey } from './tally.js';

export const routes = [...consensus_routes, ...history_routes];
