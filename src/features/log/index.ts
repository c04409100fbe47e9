export { createLogWatch, type LogConnection, type LogParts, type LogWatch } from './watch.js';
