export { createUsage, type UsageParts } from './live.js';
