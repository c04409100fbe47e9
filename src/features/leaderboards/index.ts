export { createAdjustedTimer } from './adjusted.js';
export { type Boards, createBoards } from './live.js';
export { readPerformance } from './performance.js';
export { createBoardRebuild, findBoardDifferences, rebuildBoards } from './rebuild.js';
export { type LeaderboardParts, makeLeaderboardTopics, routes } from './routes.js';
export { agent_kinds } from './rules.js';
export { type Performance, performance_schema } from './schema.js';
export { markDebaters, markStanding, readRank } from './store.js';
