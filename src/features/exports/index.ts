import { calibration_routes } from './calibration-routes.js';
import { file_routes } from './file-routes.js';
import { routes as record_routes } from './record-routes.js';

export { type ArchiveTable, writeArchive } from './archive.js';
export { csvLine } from './columns.js';
export { copyLines, copyLinesIn, setting } from './copy-store.js';
export { createExports } from './exports.js';
export type { ExportParts } from './file-routes.js';
export { pseudonymOf } from './pseudonym-store.js';

export const routes = [...file_routes, ...calibration_routes, ...record_routes];
