import { routes as feed_routes } from './feeds.js';
import { routes as log_routes } from './routes.js';

export { event_schema, wait_most_s } from './schema.js';
export { readWanted, type Wanted } from './wanted.js';
export { createLogWatch, type LogConnection, type LogParts, type LogWatch } from './watch.js';

export const routes = [...log_routes, ...feed_routes];
