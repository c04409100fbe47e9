export { routes } from './routes.js';
export { cancel_frame, consume_frame } from './schema.js';
export { makeConsumeOps } from './sockets.js';
export { readMostBehind, readOldestSeconds } from './store.js';
export { type ConsumerParts, createConsumers } from './taking.js';
