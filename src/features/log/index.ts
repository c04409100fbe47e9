export { createLogDoors, type LogDoors, type LogParts } from './doors.js';
export { routes } from './routes.js';
