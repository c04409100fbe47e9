export { createLiveConsensus, type LiveConsensus } from './live.js';
export { createConsensusProjector, tallyKey } from './projector.js';
export { type ConsensusParts, routes } from './routes.js';
export { cellField, computeConsensus } from './rules.js';
export { consensus_schema } from './schema.js';
export { consensusTopic, makeConsensusTopics } from './topics.js';
