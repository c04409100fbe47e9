import type { Deps } from '../../http/deps.js';
import { makeCache, makeQueue } from '../../kit/cache.js';
import { createPngMaker } from '../../kit/svg-png.js';
import type { LogEntry } from '../events/index.js';
import type { QuestionRow } from '../questions/index.js';
import { type Course, makeCourse, thinCourse } from './course.js';
import { readStated } from './history-store.js';
import { drawPicture, type Look } from './picture.js';

/**
 * Histories in an api process: read from the record when somebody asks, and kept for seconds or
 * until the question gets another prediction.
 */
export interface History {
  /** Of a question that the caller may see, in at most so many points. */
  read(question: QuestionRow, points: number): Promise<Course>;
  /** The same as a PNG. Rejects with a `BusyError` when too many wait for theirs. */
  png(question: QuestionRow, points: number, look: Look): Promise<Uint8Array>;
  /** Feed this from the follower. */
  onEvents(batch: readonly LogEntry[]): void;
  close(): Promise<void>;
}

/** Of all histories together. */
const most_kept_points = 100_000;
const fresh_ms = 5_000;
/** So long a history is not read again for each prediction. */
const long_history = 10_000;
const loads_at_once = 2;
const most_waiting = 1_000;
const most_png_bytes = 20_000_000;
const pixels_of_a_unit = 2;

export const createHistory = ({ sql }: Pick<Deps, 'sql'>): History => {
  const queue = makeQueue(loads_at_once, most_waiting);
  const courses = makeCache<Course>({
    ...{ most: most_kept_points, ttl_ms: fresh_ms },
    sizeOf: ({ points }) => points.length + 10,
  });
  const pngs = makeCache<Uint8Array>({ most: most_png_bytes, sizeOf: (png) => png.length });
  const maker = createPngMaker();

  const load = async ({ id, question_type, options }: QuestionRow): Promise<Course> => {
    const shape = { question_type, options };
    const { all, offset } = await sql.begin('read only', (tx) => readStated(tx, { id, ...shape }));
    return makeCourse(shape, all, offset);
  };

  const read = async (question: QuestionRow, points: number): Promise<Course> =>
    thinCourse(await courses.get(question.id, () => queue(() => load(question))), points);

  return {
    read,
    async png(question, points, look) {
      const course = await read(question, points);
      const { id, updated_at } = question;
      const key = JSON.stringify([id, updated_at.getTime(), course.offset, points, look]);
      return pngs.get(key, () =>
        maker.render(drawPicture(question, course, look), look.width * pixels_of_a_unit),
      );
    },
    onEvents(batch) {
      for (const { question_id, event } of batch) {
        if (event !== 'prediction.placed' || question_id === null) continue;
        const is_long = (courses.peek(question_id)?.total ?? 0) > long_history;
        if (!is_long) courses.forget(question_id);
      }
    },
    close: maker.close,
  };
};
