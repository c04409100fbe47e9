export { type Decided, decideQuestion } from './deciding.js';
export { scoreNumber } from './numbers.js';
export { routes } from './routes.js';
export {
  correctIndices,
  countOptions,
  type Decision,
  isSameOutcome,
  isWebAddress,
  readDecision,
  readVoiding,
  type StatedAt,
  scoringTimeOf,
  toTimed,
} from './rules.js';
export { resolution_faults, resolve_body } from './schema.js';
export { createSettling } from './settling.js';
export { questionTimes, statedForecasts } from './settling-store.js';
