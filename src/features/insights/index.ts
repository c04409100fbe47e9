export { createDays, type Days } from './live.js';
export { type InsightParts, routes } from './routes.js';
