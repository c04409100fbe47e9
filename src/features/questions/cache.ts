import type { Deps } from '../../kit/deps.js';
import { whyNotOpen } from './rules.js';
import { type QuestionRow, readQuestion } from './store.js';

/**
 * Questions in the memory of an api process, for the checks before a prediction. The commit checks
 * status and times again under the question's lock, so a copy may be a little old: a question that
 * takes predictions is believed for `fresh_ms`, and read again beside the calls that use it from
 * `renew_ms` on, so that nobody waits for one in use; any other answer only for the blink in which
 * a burst of calls asks the same thing. So every process sees at once that a question is reopened
 * or closes later, and one that is closed meanwhile is refused by the commit.
 */

export interface QuestionCache {
  get(id: string): QuestionRow | undefined | Promise<QuestionRow | undefined>;
  forget(id: string): void;
}

const renew_ms = 1_000;
const fresh_ms = 2_000;
const blink_ms = 20;
const most = 20_000;

export const createQuestionCache = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  onForget: (id: string) => void = () => undefined,
): QuestionCache => {
  const known = new Map<string, { readonly row: QuestionRow | undefined; readonly at: number }>();
  const reading = new Map<string, Promise<QuestionRow | undefined>>();

  const takesPredictions = (row: QuestionRow | undefined): boolean =>
    row !== undefined && whyNotOpen(row, clock()) === null;

  const read = async (id: string): Promise<QuestionRow | undefined> => {
    try {
      const row = await readQuestion(sql, id);
      if (known.size >= most) known.clear();
      known.set(id, { row, at: performance.now() });
      return row;
    } finally {
      reading.delete(id);
    }
  };

  const readOnce = (id: string): Promise<QuestionRow | undefined> => {
    const under_way = reading.get(id);
    if (under_way !== undefined) return under_way;
    const work = read(id);
    reading.set(id, work);
    return work;
  };

  return {
    get(id) {
      const hit = known.get(id);
      if (hit === undefined) return readOnce(id);
      const age = performance.now() - hit.at;
      if (age >= (takesPredictions(hit.row) ? fresh_ms : blink_ms)) return readOnce(id);
      if (age >= renew_ms) readOnce(id).catch(() => undefined);
      return hit.row;
    },
    forget(id) {
      known.delete(id);
      onForget(id);
    },
  };
};
