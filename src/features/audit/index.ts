export { routes } from './routes.js';
export type { Act } from './schema.js';
export { adminName, listPublicActs, type RecordedAct, recordAct } from './store.js';
