export { routes } from './routes.js';
export { createLogWatch, type LogParts } from './watch.js';
