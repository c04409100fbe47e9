export { type BoardsAsk, findBoardDifferences } from './check.js';
export { createBoardKeeper } from './keeper.js';
export { type Boards, createBoards } from './live.js';
export { type PerformanceAsk, readPerformance } from './performance.js';
export { makeLeaderboardTopics, routes, type StandingParts } from './routes.js';
export { type Performance, performance_schema } from './schema.js';
export { markDebaters, markStanding, readNet } from './store.js';
