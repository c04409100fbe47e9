import { receipt_routes } from './receipts.js';
import { admin_routes } from './routes.js';
import { simulate_routes } from './simulate.js';

export { type Decided, decideQuestion, wakeSettling } from './decide.js';
export { type Decision, readDecision, readVoiding } from './rules.js';
export { resolution_faults, resolve_body } from './schema.js';
export { createSettling } from './settling.js';

export const routes = [...admin_routes, ...receipt_routes, ...simulate_routes];
