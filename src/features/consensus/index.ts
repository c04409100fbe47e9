export { createLiveConsensus, type LiveConsensus } from './live.js';
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
export { readInPortions } from './store.js';
export { cellField, countAll, readCells, statedIn, tallyKey, timeOf } from './tally.js';
export { consensusTopic, makeConsensusTopics } from './topics.js';
