export { type Decided, decideQuestion, recordDecision } from './deciding.js';
export { createSettling } from './settling.js';
export { questionTimes, statedForecasts } from './settling-store.js';
