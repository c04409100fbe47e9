export {
  consensusTopic,
  createLiveConsensus,
  type LiveConsensus,
  makeConsensusTopics,
} from './live.js';
export { extremize, type Family, logOdds, shown } from './pooling.js';
export { createConsensusProjector } from './projector.js';
export { type ConsensusParts, routes } from './routes.js';
export {
  type Consensus,
  computeConsensus,
  givenBy,
  leadingOf,
  mean,
  meanGiven,
  type QuestionShape,
  quantile,
  share,
} from './rules.js';
export { consensus_schema } from './schema.js';
export { readConsensus } from './store.js';
export { cellField, countAll, readCells, tallyKey } from './tally.js';
