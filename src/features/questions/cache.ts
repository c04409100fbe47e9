import type { Deps } from '../../kit/deps.js';
import { makeGather } from '../../kit/gather.js';
import { whyNotOpen } from './rules.js';
import { type QuestionRow, readQuestions } from './store.js';

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

  const takesPredictions = (row: QuestionRow | undefined): boolean =>
    row !== undefined && whyNotOpen(row, clock()) === null;

  const read = makeGather<QuestionRow | undefined>({
    ...{ most: 200, lanes: 2 },
    async read(ids) {
      const rows = new Map((await readQuestions(sql, ids)).map((row) => [row.id, row]));
      const at = performance.now();
      if (known.size + ids.length > most) known.clear();
      return ids.map((id) => {
        const row = rows.get(id.toLowerCase());
        known.set(id, { row, at });
        return row;
      });
    },
  });

  return {
    get(id) {
      const hit = known.get(id);
      if (hit === undefined) return read(id);
      const age = performance.now() - hit.at;
      if (age >= (takesPredictions(hit.row) ? fresh_ms : blink_ms)) return read(id);
      if (age >= renew_ms) read(id).catch(() => undefined);
      return hit.row;
    },
    forget(id) {
      known.delete(id);
      onForget(id);
    },
  };
};
