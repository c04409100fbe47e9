export { type Briefs, createBriefs } from './live.js';
export { type BriefParts, routes } from './routes.js';
