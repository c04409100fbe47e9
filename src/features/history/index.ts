export { type Chart, type ChartAsk, type ChartPoint, makeChart } from './chart.js';
export { type DriftOptions, findMoves, type Move, shareMove } from './drift.js';
export { createLiveHistory, type LiveHistory } from './live.js';
export { type Moment, makeRun, type Run, type RunShape, type Stated } from './run.js';
export { makeSeries, type Series } from './series.js';
export { readStated } from './store.js';
