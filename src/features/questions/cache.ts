import { makeCache, makeLoader } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import { whyNotOpen } from './rules.js';
import { type NumberedQuestion, readQuestions } from './store.js';

/**
 * Questions in the memory of an api process, for the checks before a prediction. The commit checks
 * status and times again under the question's lock, and the rest stands while a question is open,
 * so a copy may be a second old. Only a question that takes predictions is kept, so every process
 * sees at once that one is opened, reopened or closes later; the events of its life drop it.
 */

type Found = NumberedQuestion | undefined;

export interface QuestionCache {
  get(id: string): Found | Promise<Found>;
  forget(id: string): void;
}

export const createQuestionCache = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  /** Told of every question that is forgotten. */
  onForget: (id: string) => void = () => undefined,
): QuestionCache => {
  // One reading at a time: what is new to a process comes in rushes.
  const options = { most: 200, at_once: 1 };
  const read = makeLoader<Found>(async (ids) => {
    const rows = new Map((await readQuestions(sql, ids)).map((row) => [row.id, row]));
    return ids.map((id) => rows.get(id));
  }, options);
  const isKept = (row: Found): boolean => row !== undefined && whyNotOpen(row, clock()) === null;
  const cache = makeCache<Found>({ most: 20_000, ttl_ms: 1_000, isKept });
  return {
    get(asked) {
      const id = asked.toLowerCase();
      return cache.get(id, () => read(id));
    },
    forget(asked) {
      const id = asked.toLowerCase();
      cache.forget(id);
      onForget(id);
    },
  };
};
