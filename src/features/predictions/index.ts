export {
  hidden_reasoning,
  type PredictionRow,
  prediction_schema,
  read_sql as prediction_sql,
  toWire as predictionWire,
} from './columns.js';
export { checkReasoning } from './gates.js';
export {
  type Imported,
  type ImportedQuestion,
  type ImportOutcome,
  recordImported,
} from './imported.js';
export { createOriginality, QuestionMemory } from './originality.js';
export { valueAxisOf } from './picture.js';
export { answerRequest, createPlacing, type PlaceParts, type PlaceRequest } from './placing.js';
export { createReach } from './reach.js';
export { readCitation, readSections, type Sections } from './reasoning.js';
export { createRevising, type ReviseParts } from './revising.js';
export { type PredictParts, routes } from './routes.js';
export { hasFailures, prediction_faults, refuseFailures, stated_members } from './schema.js';
export { seesReasoning, showPredictions, sightHeaders } from './sight.js';
export {
  distributionOf,
  readStated,
  type Stated,
  type StatedBody,
  type StatedQuestion,
} from './stated.js';
export { curveOf, readShownCdf, showCdf, valueAt } from './stated-cdf.js';
export {
  givenSides,
  type Hidden,
  listPredictions,
  setPredictionHidden,
  stoodAt,
  timedForecasts,
} from './store.js';
