export { answerPrediction, type PredictionParts, type PredictionRequest } from './answering.js';
export {
  type Imported,
  type ImportedQuestion,
  type ImportOutcome,
  recordImported,
} from './imported.js';
export { createLinkCheck } from './link-check.js';
export { forecastKey, type Listed, newest_kinds, readNewest } from './newest-store.js';
export { createOriginality, QuestionMemory } from './originality.js';
export { createPlacing } from './placing.js';
export { createRevising, type ReviseParts } from './revising.js';
export {
  givenSides,
  type Hidden,
  listPredictions,
  setPredictionHidden,
  stoodAt,
  timedForecasts,
} from './store.js';
export { seesReasoning, showPredictions, visibilityHeaders } from './visibility.js';
