import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Deps } from '../../http/deps.js';
import { makeCache, makeQueue } from '../../kit/cache.js';
import { createPngMaker } from '../../kit/svg-png.js';
import type { LogEntry } from '../events/index.js';
import type { QuestionRow } from '../questions/index.js';
import { driftOf } from './drift.js';
import { downsample } from './lttb.js';
import { drawPicture, type Look } from './picture.js';
import { type Course, makeRun, type RunShape, type TimedForecast } from './run.js';
import { most_points, type Point } from './schema.js';
import { readForecasts } from './store.js';

/** Predictions that are counted at a time; answers to others come in between. */
const portion = 1_000;

/** Of all predictions on a question, in the order of their times. */
export const makeCourse = async (
  shape: RunShape,
  all: readonly TimedForecast[],
  offset: number,
): Promise<Course> => {
  const run = makeRun(shape);
  const moments: Point[] = [];
  for (const [n, one] of all.entries()) {
    run.add(one);
    if (all[n + 1]?.at !== one.at) moments.push({ at: one.at, ...run.read() });
    if (n % portion === portion - 1) await nextTurn();
  }
  const points = thin(shape, moments, most_points);
  const drift_events = driftOf(shape, all, points);
  return { shape, offset, total: all.length, moments: moments.length, points, drift_events };
};

/** Those that show the shape of the figures best. */
const thin = ({ question_type }: RunShape, points: readonly Point[], most: number): Point[] => {
  const figures = points.map((point) =>
    question_type === 'binary'
      ? [point.yes_percent, point.mean_probability ?? 0, point.extremized ?? 0]
      : point.option_probabilities,
  );
  const ys = (figures[0] ?? []).map((_, n) => figures.map((row) => row[n] as number));
  const chosen = downsample({ x: points.map(({ at }) => at), ys }, most);
  return chosen.map((n) => points[n] as Point);
};

/** At most so many points of it, 2 or more. */
export const thinCourse = (course: Course, most: number): Course => ({
  ...course,
  points: thin(course.shape, course.points, most),
});

const most_cached_points = 100_000;
const fresh_ms = 5_000;
/** So long a history is not read again for each prediction. */
const long_history = 10_000;
const loads_at_once = 2;
const most_waiting = 1_000;
const most_png_bytes = 20_000_000;
const pixels_of_a_unit = 2;

/** Histories of a process, cached for seconds or until there is another prediction. */
export const createHistory = ({ sql }: Pick<Deps, 'sql'>) => {
  const queue = makeQueue(loads_at_once, most_waiting);
  const courses = makeCache<Course>({
    ...{ most: most_cached_points, ttl_ms: fresh_ms },
    sizeOf: ({ points }) => points.length + 10,
  });
  const pngs = makeCache<Uint8Array>({ most: most_png_bytes, sizeOf: (png) => png.length });
  const maker = createPngMaker();

  const load = async ({ id, question_type, options }: QuestionRow): Promise<Course> => {
    const shape = { question_type, options };
    const { all, offset } = await sql.begin({ mode: 'read only' }, (tx) =>
      readForecasts(tx, { id, ...shape }),
    );
    return makeCourse(shape, all, offset);
  };

  /** Of a question that the caller may see, in at most so many points. */
  const read = async (question: QuestionRow, points: number): Promise<Course> =>
    thinCourse(await courses.get(question.id, () => queue(() => load(question))), points);

  return {
    read,
    /** The same as a PNG. Rejects with a `BusyError` when too many wait for theirs. */
    async png(question: QuestionRow, points: number, look: Look): Promise<Uint8Array> {
      const course = await read(question, points);
      const { id, updated_at } = question;
      const key = JSON.stringify([id, updated_at.getTime(), course.offset, points, look]);
      return pngs.get(key, () =>
        maker.render(drawPicture(question, course, look), look.width * pixels_of_a_unit),
      );
    },
    /** Feed this from the follower. */
    onEvents(batch: readonly LogEntry[]): void {
      for (const { question_id, event } of batch) {
        if (event !== 'prediction.placed' || question_id === null) continue;
        const is_long = (courses.peek(question_id)?.total ?? 0) > long_history;
        if (!is_long) courses.forget(question_id);
      }
    },
    close: maker.close,
  };
};
export type History = ReturnType<typeof createHistory>;
