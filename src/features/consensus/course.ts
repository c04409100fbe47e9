import { setImmediate as nextTurn } from 'node:timers/promises';
import { driftOf } from './drift.js';
import { type MoveWire, most_points, type Point } from './history-schema.js';
import { downsample } from './lttb.js';
import { makeRun, type RunShape, type Stated } from './run.js';

/**
 * How the consensus of a question came about, in as many points as a chart can show at most: of all
 * its moments those that show its shape. Predictions of one millisecond are one moment, so that the
 * order among them does not matter.
 */
export interface Course {
  readonly shape: RunShape;
  /** Offset of the newest prediction that is counted in; 0 where there is none. */
  readonly offset: number;
  /** How many predictions there are. */
  readonly total: number;
  /** How many moments there were to choose from. */
  readonly moments: number;
  readonly points: readonly Point[];
  readonly drift_events: readonly MoveWire[];
}

/** Predictions that are counted at a time; answers to others come in between. */
const portion = 1_000;

/** One array for each figure of many rows of figures. */
const columnsOf = (rows: readonly (readonly number[])[]): number[][] =>
  (rows[0] ?? []).map((_, n) => rows.map((row) => row[n] as number));

/** Of all predictions on a question, in the order of their times. */
export const makeCourse = async (
  shape: RunShape,
  all: readonly Stated[],
  offset: number,
): Promise<Course> => {
  const run = makeRun(shape);
  const ends: number[] = [];
  const figures: (readonly number[])[] = [];
  for (const [n, one] of all.entries()) {
    run.add(one);
    if (n % portion === portion - 1) await nextTurn();
    if (all[n + 1]?.at === one.at) continue;
    ends.push(n);
    figures.push(run.figures());
  }
  const x = ends.map((n) => (all[n] as Stated).at);
  const chosen = downsample({ x, ys: columnsOf(figures) }, most_points);
  // A whole moment costs more than its figures, so only those that are shown are read.
  const again = makeRun(shape);
  const points: Point[] = [];
  let next = 0;
  for (const place of chosen) {
    for (; next <= (ends[place] as number); next += 1) {
      again.add(all[next] as Stated);
      if (next % portion === portion - 1) await nextTurn();
    }
    points.push({ at: x[place] as number, ...again.read() });
  }
  const drift_events = driftOf(shape, all, points);
  return { shape, offset, total: all.length, moments: ends.length, points, drift_events };
};

/** At most so many points of it, 2 or more. */
export const thinCourse = (course: Course, most: number): Course => {
  const { shape, points } = course;
  const figures = points.map((point) =>
    shape.question_type === 'binary'
      ? [point.yes_percent, point.mean_probability ?? 0, point.extremized ?? 0]
      : point.option_probabilities,
  );
  const curves = { x: points.map(({ at }) => at), ys: columnsOf(figures) };
  return { ...course, points: downsample(curves, most).map((n) => points[n] as Point) };
};
