export { readMostBehind, readOldestSeconds } from './store.js';
export { type ConsumerParts, createConsumers } from './taking.js';
