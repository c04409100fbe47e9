import type { Deps } from '../../kit/deps.js';
import { makeGather } from '../../kit/gather.js';
import { whyNotOpen } from './rules.js';
import { type NumberedQuestion, type QuestionRow, readQuestions } from './store.js';

/**
 * Questions in the memory of an api process, for the checks before a prediction. The commit checks
 * status and times again under the question's lock, so a copy may be a little old: a question that
 * takes predictions is believed for `fresh_ms`, and read again beside the calls that use it from
 * `renew_ms` on, together with others, so that nobody waits for one in use; any other answer only
 * for the blink in which a burst of calls asks the same thing. So every process sees at once that a
 * question is reopened or closes later, and one that is closed meanwhile is refused by the commit.
 */

type Cached = NumberedQuestion | undefined;

export interface QuestionCache {
  get(id: string): Cached | Promise<Cached>;
  forget(id: string): void;
}

const renew_ms = 1_000;
const fresh_ms = 2_000;
/** Nobody waits for what is read again: for so long it waits for others that it goes with. */
const renewals_ms = 100;
const blink_ms = 20;
const most = 20_000;

export const createQuestionCache = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  onForget: (id: string) => void = () => undefined,
): QuestionCache => {
  const known = new Map<string, { readonly row: Cached; readonly at: number }>();

  const takesPredictions = (row: QuestionRow | undefined): boolean =>
    row !== undefined && whyNotOpen(row, clock()) === null;

  // One after the other: what is new to a process comes in rushes, and the first of a rush, read
  // by themselves, would cost as much as all others together.
  const read = makeGather<Cached>({
    ...{ most: 200, lanes: 1 },
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

  let renewing = new Set<string>();
  const renewSoon = (id: string): void => {
    if (renewing.size === 0) {
      setTimeout(() => {
        const ids = renewing;
        renewing = new Set();
        for (const one of ids) read(one).catch(() => undefined);
      }, renewals_ms).unref();
    }
    renewing.add(id);
  };

  return {
    get(id) {
      const hit = known.get(id);
      if (hit === undefined) return read(id);
      const age = performance.now() - hit.at;
      if (age >= (takesPredictions(hit.row) ? fresh_ms : blink_ms)) return read(id);
      if (age >= renew_ms) renewSoon(id);
      return hit.row;
    },
    forget(id) {
      known.delete(id);
      onForget(id);
    },
  };
};
