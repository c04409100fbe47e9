import { movers_routes } from './movers-routes.js';
import { chart_routes } from './routes.js';

export { type Chart, type ChartAsk, type ChartPoint, makeChart } from './chart.js';
export { type DriftOptions, findMoves, type Move, shareMove } from './drift.js';
export { type DriftAsk, driftOf, windowMs } from './drift-answer.js';
export { createHistory, type History, type Picture } from './history.js';
export { createLiveHistory, type LiveHistory } from './live.js';
export type { Mover } from './movers.js';
export { type Movers, MoversBusyError } from './movers-live.js';
export type { Stretch } from './movers-store.js';
export { drawPicture, type PictureOf } from './picture.js';
export type { HistoryParts } from './routes.js';
export { type Moment, makeRun, type Run, type RunShape, type Stated } from './run.js';
export { makeSeries, type Series } from './series.js';
export { createSnapshotTaker, createSnapshotTimer } from './snapshots.js';
export { readStated } from './store.js';

export const routes = [...chart_routes, ...movers_routes];
