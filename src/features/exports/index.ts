import { calibration_routes } from './calibration-routes.js';
import { file_routes } from './file-routes.js';

export type { ExportParts } from './file-routes.js';
export { createExports, type Exports, pseudonymOf } from './runner.js';

export const routes = [...file_routes, ...calibration_routes];
