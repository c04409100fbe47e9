export {
  type Imported,
  type ImportedQuestion,
  type ImportOutcome,
  recordImported,
} from './imported.js';
export { createOriginality, QuestionMemory } from './originality.js';
export { answerRequest, type PlaceParts, type PlaceRequest } from './placing.js';
export { createReach } from './reach.js';
export { createRevising, type ReviseParts } from './revising.js';
export { seesReasoning, showPredictions, sightHeaders } from './sight.js';
export {
  givenSides,
  type Hidden,
  listPredictions,
  setPredictionHidden,
  stoodAt,
  timedForecasts,
} from './store.js';
export { createPlacing } from './storing.js';
