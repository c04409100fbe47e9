export { readCitation } from './citations.js';
export { hasFailures, prediction_faults, refuseFailures } from './faults.js';
export { checkReasoning, hashSources } from './gates.js';
export {
  type Imported,
  type ImportedQuestion,
  type ImportOutcome,
  recordImported,
} from './imported.js';
export { createOriginality, QuestionMemory } from './originality.js';
export type { PlaceParts } from './place.js';
export { createPlacing } from './placing.js';
export { createReach } from './reach.js';
export { routes } from './routes.js';
export { prediction_schema } from './schema.js';
export { readSections, type Sections } from './sections.js';
export { seesReasoning, showPredictions, sightHeaders } from './sight.js';
export {
  distributionOf,
  readStated,
  type Stated,
  type StatedBody,
  type StatedForecast,
  type StatedQuestion,
} from './stated.js';
export {
  givenSides,
  type Hidden,
  listPredictions,
  type PredictionRow,
  setPredictionHidden,
  toWire as predictionWire,
} from './store.js';
