export {
  consensusTopic,
  createLiveConsensus,
  type LiveConsensus,
  makeConsensusTopics,
} from './live.js';
export { createConsensusProjector } from './projector.js';
export { type ConsensusParts, routes } from './routes.js';
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
export { consensus_schema } from './schema.js';
export { readConsensus } from './store.js';
export { cellField, countAll, readCells, tallyKey } from './tally.js';
