import { setImmediate as nextTurn } from 'node:timers/promises';
import { t } from 'tap';
import { questionId, seed } from '../../../bench/env/seed.js';
import { makeReasoning } from '../../../bench/load/predict-texts.js';
import { createGates } from '../../../src/features/predictions/index.js';
import type { QuestionMemory } from '../../../src/features/predictions/question-memory.js';
import { readWords } from '../../../src/features/predictions/reasoning.js';
import { openParts } from '../../help/parts.js';

const { deps } = await openParts(t);
await seed(deps.sql, { keys: [], questions: 3 });

/** Some 60 KB. */
const fill = (memory: QuestionMemory): void => {
  for (let n = 0; n < 50; n += 1) {
    const text = { words: readWords(makeReasoning(n)), sources: [], model_family: 'gpt' };
    memory.stored(memory.add(text, `prediction ${n}`), n + 1);
  }
};

const newQuestion = (n: number) => ({ id: questionId(n), last_seq: 0, prediction_count: 0 });

/** Two questions that are full, then a third one: which of the two are kept? */
const tryWith = async (kilobytes: number, in_use_ms: number) => {
  const config = { ...deps.config, ORIGINALITY_MB: kilobytes / 1_000 };
  const gates = createGates({ ...deps, config }, { in_use_ms });
  const full = [await gates.question(newQuestion(0)), await gates.question(newQuestion(1))];
  for (const memory of full) fill(memory);
  await gates.question(newQuestion(2));
  await nextTurn();
  const kept = full.map((memory, n) => gates.question(newQuestion(n)) === memory);
  return { bytes: full.map((memory) => memory.bytes), kept };
};

t.test('questions in use are kept when there are more than there is memory for', async (t) => {
  const { bytes, kept } = await tryWith(50, 60_000);
  t.ok(
    bytes.every((one) => one > 30_000 && one < 100_000),
    `${bytes} bytes`,
  );
  t.same(kept, [true, true]);
});

t.test('those that are not in use any more are forgotten', async (t) => {
  t.same((await tryWith(50, 0)).kept, [false, false]);
});

t.test('at eight times as much those in use are forgotten too, the oldest first', async (t) => {
  t.same((await tryWith(12, 60_000)).kept, [false, true]);
});
