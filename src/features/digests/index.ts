export { createDigestTimer, stopRefused } from './sending.js';
export { beginSettings } from './store.js';
