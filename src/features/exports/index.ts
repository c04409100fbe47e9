import { prediction_routes } from './prediction-routes.js';

export type { ExportParts } from './prediction-routes.js';
export { createExports, type Exports, pseudonymOf } from './runner.js';

export const routes = [...prediction_routes];
