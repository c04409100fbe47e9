export { createRetention } from './retention.js';
