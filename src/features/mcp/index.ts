export { createMcp } from './live.js';
export { type McpParts, routes } from './routes.js';
export { type McpCall, makeMcpServer, questionUri } from './server.js';
export { makeTools } from './tools.js';
