export { type Briefs, createBriefs, createDays } from './live.js';
export { type BriefParts, routes } from './routes.js';
