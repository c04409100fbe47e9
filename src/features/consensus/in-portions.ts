import { setTimeout as wait } from 'node:timers/promises';
import type { Tx } from '../../kit/pg/client.js';
import { makeLiveTally } from './live-tally.js';
import { type Consensus, computeConsensus, givenBy, type QuestionShape } from './rules.js';
import { readStated } from './store.js';

/** Predictions that are read at a time; then the cores are left to others for a moment. */
const portion = 1_000;
const rest_ms = 10;

/**
 * The consensus from the record for someone who can wait; with `before` as it was before that
 * offset of the log. However many predictions a question has, those who predict meanwhile do not
 * notice.
 */
export const readInPortions = async (
  tx: Tx,
  question: QuestionShape,
  before: number | null = null,
): Promise<Consensus> => {
  const tally = makeLiveTally({ said: [], offset: 0, updated_at: null });
  for await (const rows of readStated(tx, question.id, { before, portion })) {
    for (const { owner, created_at, offset, probabilities, ...said } of rows) {
      const given = givenBy(said, probabilities, question.options.length);
      tally.add(Object.assign(said, { given }), { owner, offset, at: created_at.toISOString() });
    }
    if (rows.length === portion) await wait(rest_ms);
  }
  return computeConsensus(question, tally.read());
};
