export { createAdjustedTimer } from './adjusted.js';
export { type Boards, createBoards } from './boards.js';
export { calibrationOf, readPerformance } from './performance.js';
export { type BoardRequest, type LeaderboardParts, readLeaderboard } from './reading.js';
export { createBoardRebuild, findBoardDifferences, rebuildBoards } from './rebuild.js';
export { markDebaters, markStanding, readRank } from './store.js';
