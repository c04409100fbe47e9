export { type ArchiveTable, writeArchive } from './archive.js';
export { csvLine } from './columns.js';
export { copyLines, copyLinesIn, setting } from './copy-store.js';
export { createExports } from './exports.js';
export { pseudonymOf } from './pseudonym-store.js';
