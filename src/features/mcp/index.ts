export { createMcp } from './live.js';
export { makeTools } from './tools.js';
