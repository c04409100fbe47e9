export { readInPortions } from './in-portions.js';
export { createLiveConsensus, type LiveConsensus } from './live.js';
export { makeLiveTally } from './live-tally.js';
export { extremize, type Family, logOdds, shown } from './pooling.js';
export { createConsensusProjector, tallyKey } from './projector.js';
export { type ConsensusParts, routes } from './routes.js';
export {
  type Consensus,
  cellField,
  computeConsensus,
  givenBy,
  leadingOf,
  mean,
  meanGiven,
  type QuestionShape,
  quantile,
  share,
} from './rules.js';
export { saidIn, statedIn, timeOf } from './said.js';
export { consensus_schema } from './schema.js';
export { consensusTopic, makeConsensusTopics } from './topics.js';
