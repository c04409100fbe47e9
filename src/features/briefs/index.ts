export { type Briefs, createBriefs, createDays } from './live.js';
