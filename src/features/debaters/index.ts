export { findDebaterDifferences } from './check.js';
export { createDebaterKeeper } from './keeper.js';
export { readPageOf as readDebaterPage } from './live.js';
export { routes } from './routes.js';
export { markDebaters, type Ranked as RankedDebater } from './store.js';
