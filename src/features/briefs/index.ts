export { readDay } from './daily-rules.js';
export { type Briefs, createBriefs, createDays } from './live.js';
export { outcomeText } from './rules.js';
