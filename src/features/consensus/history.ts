import type { Deps } from '../../http/deps.js';
import { makeCache, makeQueue } from '../../kit/cache.js';
import { makePause } from '../../kit/loop.js';
import type { LogEntry } from '../events/log-entry.js';
import type { QuestionRow } from '../questions/index.js';
import { type ModelFamily, model_families } from '../taxonomy/model-family.js';
import type { Fit } from './correlation.js';
import { driftOf, type Step } from './drift.js';
import type { LiveConsensus } from './live.js';
import { downsample } from './lttb.js';
import { followMoments, type Recorded } from './moments.js';
import { findMovers } from './movers.js';
import { isNumber, placeOf } from './numbers.js';
import { type Course, makeRun, type RunShape, type TimedForecast } from './run.js';
import { type Moment, max_points, type Point } from './schema.js';
import { readForecasts, readLastOffset } from './store.js';
import { movesConsensus } from './tally.js';

/** Points that `thin` reads in one turn of the event loop. */
const points_a_turn = 5_000;

/** Returns the headline figures whose moves are drift: one, or one for each option. */
const headlineIn = (shape: RunShape, { forecast, option_forecasts }: Moment): readonly number[] =>
  shape.options.length > 0
    ? option_forecasts
    : [isNumber(shape) ? placeOf(shape, forecast ?? 0) : (forecast ?? 0)];

const figuresIn = ({ forecast, pooled, option_forecasts, fan = [] }: Moment) =>
  [forecast, pooled, ...option_forecasts, ...fan].join();

/** Builds a history. A new fit is a moment only if it changes a figure. */
export const makeCourse = async (
  shape: RunShape,
  { offset, ...recorded }: Recorded & { readonly offset: number },
): Promise<Course> => {
  const run = makeRun(shape);
  const moments: Point[] = [];
  const steps: Step[] = [];
  let now: Moment | null = null;
  const add = (one: TimedForecast, fit: Fit): void => {
    const before = now && headlineIn(shape, now);
    run.add(one);
    now = run.read(fit);
    const moved = headlineIn(shape, now).map((value, n) => value - (before?.[n] ?? value));
    steps.push({ at: one.at, family: one.family, agent: one.agent, moved });
  };
  for await (const { at, fit, is_new_fit } of followMoments(recorded, add)) {
    const moment: Moment = is_new_fit || now === null ? run.read(fit) : now;
    const last = moments.at(-1);
    if (is_new_fit && last !== undefined && figuresIn(last) === figuresIn(moment)) continue;
    now = moment;
    moments.push({ at, ...moment });
  }
  const points = await thin(shape, moments, max_points);
  const drift_events = await driftOf(shape, steps, points);
  const total = moments.at(-1)?.count ?? 0;
  const leader = shape.options.indexOf(moments.at(-1)?.leading_option ?? '');
  const { until_ms } = recorded;
  const movers = await findMovers(steps, { figure: Math.max(0, leader), until_ms });
  return {
    shape,
    offset,
    total,
    moments: moments.length,
    last_forecast_ms: steps.at(-1)?.at ?? null,
    points,
    drift_events,
    movers,
  };
};

/** Returns at most `most` points, chosen to show the shape of the figures. */
const thin = async (
  shape: RunShape,
  points: readonly Point[],
  most: number,
): Promise<readonly Point[]> => {
  if (points.length <= most) return points;
  const figuresOf = (point: Point): readonly number[] =>
    shape.question_type === 'binary'
      ? [point.yes_percent ?? 0, point.mean_probability ?? 0, point.forecast ?? 0]
      : (point.fan?.map((value) => placeOf(shape, value)) ?? point.option_forecasts);
  const pause = makePause(points_a_turn);
  const ys: number[][] = figuresOf(points[0] as Point).map(() => []);
  for (const point of points) {
    for (const [n, figure] of figuresOf(point).entries()) ys[n]?.push(figure);
    await pause();
  }
  const chosen = await downsample({ x: points.map(({ at }) => at), ys }, most);
  return chosen.map((n) => points[n] as Point);
};

/** Returns the history, thinned to at most `most` points (2 or more). */
export const thinCourse = async (course: Course, most: number): Promise<Course> => ({
  ...course,
  points: await thin(course.shape, course.points, most),
});

const max_cached_points = 100_000;
const fresh_ms = 5_000;
/** A history with more moments than this expires only with time, not with each new forecast. */
const long_history = 10_000;
const loads_at_once = 2;
const max_waiting = 1_000;

const courseKey = (id: string, family: ModelFamily | undefined): string =>
  family === undefined ? id : `${id} ${family}`;

/** Caches the histories of questions for a few seconds, or until the next forecast. */
export const createHistory = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  live: Pick<LiveConsensus, 'fits'>,
) => {
  const queue = makeQueue(loads_at_once, max_waiting);
  const courses = makeCache<Course>({
    most: max_cached_points,
    ttl_ms: fresh_ms,
    sizeOf: ({ points }) => points.length + 10,
  });

  const load = async (question: QuestionRow, family?: ModelFamily): Promise<Course> => {
    const { id, question_type, options, range_min, range_max, ended_at } = question;
    const shape = { question_type, options, range_min, range_max };
    const until_ms = (ended_at ?? clock()).getTime();
    const fits = await live.fits();
    // All statements see the same state, so the offset belongs to the newest forecast they read.
    return sql.begin({ mode: 'isolation level repeatable read read only' }, async (tx) => {
      const offset = await readLastOffset(tx, id);
      const all = readForecasts(tx, { id, ...shape }, family);
      const course = await makeCourse(shape, { all, offset, fits, until_ms });
      return course.total === 0 ? { ...course, offset: 0 } : course;
    });
  };

  /** Reads at most `points` points, for one family or for all. Does not check visibility. */
  const read = async (
    question: QuestionRow,
    points: number,
    family?: ModelFamily,
  ): Promise<Course> => {
    const key = courseKey(question.id, family);
    return thinCourse(await courses.get(key, () => queue(() => load(question, family))), points);
  };

  return {
    read,
    /** The follower calls this with each batch of events. */
    onEvents(batch: readonly LogEntry[]): void {
      for (const { question_id, event } of batch) {
        if (question_id === null || !movesConsensus({ event })) continue;
        const is_long = (courses.peek(question_id)?.moments ?? 0) > long_history;
        if (is_long) continue;
        for (const family of [undefined, ...model_families]) {
          courses.forget(courseKey(question_id, family));
        }
      }
    },
  };
};
export type History = ReturnType<typeof createHistory>;

export interface HistoryParts {
  readonly history: History;
}
