import { routes as insights_routes } from './insight-routes.js';
import { routes as briefs_routes } from './routes.js';

export { createDays, type Days } from './days.js';
export type { InsightParts } from './insight-routes.js';
export { type Briefs, createBriefs } from './live.js';
export type { BriefParts } from './routes.js';

export const routes = [...briefs_routes, ...insights_routes];
