import { t } from 'tap';
import { questionId } from '../../../bench/env/seed.js';
import { readConsensus } from '../../../src/features/consensus/index.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { openParts } from '../../help/parts.js';
import { addPredictions, addQuestions, type Placed, without } from './world.js';

/** The consensus from the record: as SQL has it, and as it was before an offset of the log. */

const families = ['claude', 'gemini', 'gpt'];

const some = (question: number, from: number, count: number): Placed[] =>
  Array.from({ length: count }, (_, n) => ({
    ...{ question, agent: from + n, at: new Date() },
    family: families[(from + n) % 3] as string,
    value: (37 * (from + n)) % 101,
  }));

const shapeOf = (question: number) =>
  ({ id: questionId(question), question_type: 'binary', options: [] }) as const;

t.test('of no predictions, and of many', async (t) => {
  const { sql } = (await openParts(t)).deps;
  const counts = [0, 1, 2_000];
  await addQuestions(sql, { count: counts.length });
  for (const [question, count] of counts.entries()) {
    if (count > 0) await addPredictions(sql, some(question, 0, count));
  }
  const wanted = await recomputeConsensus(sql);
  // One after the other in one transaction, as the snapshots of several questions are taken.
  const all = await sql.begin(async (tx) => {
    const read = [];
    for (const question of counts.keys()) read.push(await readConsensus(tx, shapeOf(question)));
    return read;
  });
  for (const [question, consensus] of all.entries()) {
    t.equal(consensus.total_predictions, counts[question]);
    if (counts[question] !== 0) {
      t.strictSame(without({ ...consensus }), wanted.get(questionId(question)));
    }
  }
  t.same(
    all.map(({ offset }) => offset),
    [0, 1, 2_001],
  );
});

t.test('only what stands in the log before an offset', async (t) => {
  const { sql } = (await openParts(t)).deps;
  await addQuestions(sql, { count: 1 });
  await addPredictions(sql, some(0, 0, 2_500));
  const wanted = await recomputeConsensus(sql);
  await addPredictions(sql, some(0, 2_500, 7));
  const then = await sql.begin((tx) => readConsensus(tx, shapeOf(0), 2_501));
  t.strictSame(without({ ...then }), wanted.get(questionId(0)));
});
