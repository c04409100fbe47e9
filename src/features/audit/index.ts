export { adminName, type RecordedAct, recordAct } from './record.js';
export { routes } from './routes.js';
export type { Act } from './schema.js';
