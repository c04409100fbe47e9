import { movers_routes } from './movers-routes.js';
import { chart_routes } from './routes.js';

export { type Chart, type ChartAsk, type ChartPoint, makeChart } from './chart.js';
export { driftOf } from './drift.js';
export { createHistory, type History, type Movers } from './history.js';
export type { Mover } from './movers.js';
export { drawPicture, type PictureOf } from './picture.js';
export type { HistoryParts } from './routes.js';
export { makeRun, type Run, type RunShape, type Stated } from './run.js';
export { makeSeries } from './series.js';
export { createSnapshotTaker, createSnapshotTimer } from './snapshots.js';

export const routes = [...chart_routes, ...movers_routes];
