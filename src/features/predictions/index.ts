export { readCitation } from './citations.js';
export { hasFailures, prediction_faults, refuseFailures } from './faults.js';
export { createGates } from './gates.js';
export { type Hidden, setPredictionHidden } from './hiding-store.js';
export {
  type Imported,
  type ImportedQuestion,
  type ImportOutcome,
  recordImported,
} from './imported.js';
export type { PlaceParts } from './place-parts.js';
export { createPlacing } from './placing.js';
export { hashSources, QuestionMemory } from './question-memory.js';
export { createReach } from './reach.js';
export { checkReasoning } from './reasoning.js';
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
export { givenSides, listPredictions, type PredictionRow } from './store.js';
export { toWire as predictionWire } from './views.js';
