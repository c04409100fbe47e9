import { routes as disputes_routes } from './dispute-routes.js';
import { receipt_routes } from './receipts.js';
import { admin_routes } from './routes.js';

export { type Decided, decideQuestion } from './deciding.js';
export { type Decision, isWebAddress, readDecision, readVoiding } from './rules.js';
export { resolution_faults, resolve_body } from './schema.js';
export { createSettling } from './settling.js';

export const routes = [...admin_routes, ...receipt_routes, ...disputes_routes];
