export { type Decided, decideQuestion } from './deciding.js';
export { routes } from './routes.js';
export { type Decision, isWebAddress, readDecision, readVoiding } from './rules.js';
export { resolution_faults, resolve_body } from './schema.js';
export { createSettling } from './settling.js';
