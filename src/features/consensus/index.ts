export { readFits } from './fits-store.js';
export { createFitting, fitToday } from './fitting.js';
export { createHeadlines } from './headlines.js';
export {
  createHistory,
  type History,
  type HistoryParts,
  makeCourse,
  thinCourse,
} from './history.js';
export {
  type ConsensusParts,
  consensusTopic,
  createConsensusProjector,
  createLiveConsensus,
  type LiveConsensus,
  makeConsensusTopics,
  rebuildTallies,
  versionOf,
} from './live.js';
export { deleteHourly, lockOldHourly } from './old-snapshots-store.js';
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
