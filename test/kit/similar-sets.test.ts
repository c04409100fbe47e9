import fc from 'fast-check';
import { t } from 'tap';
import { leastOverlap, type SimilarSet, SimilarSets } from '../../src/kit/similar-sets.js';
import { holds } from '../help/property.js';

const setOf = (words: Iterable<number>): string[] => Array.from(new Set(words), String);

/** What everybody agrees the answer is: each set beside each, in fractions. */
const bruteForce = (
  kept: readonly ReadonlySet<number>[],
  set: ReadonlySet<number>,
): SimilarSet | null => {
  let best: SimilarSet | null = null;
  for (const [entry, other] of kept.entries()) {
    let overlap = 0;
    for (const word of set) if (other.has(word)) overlap += 1;
    const union = set.size + other.size - overlap;
    if (overlap === 0 || 5 * overlap < 3 * union) continue;
    const similarity = overlap / union;
    if (best === null || similarity > best.similarity) best = { entry, overlap, similarity };
  }
  return best;
};

type Step =
  | { readonly kind: 'add'; readonly words: readonly number[] }
  | { readonly kind: 'like'; readonly of: number; readonly drop: number; readonly more: number };

const run = (steps: readonly Step[]): string | null => {
  const sets = new SimilarSets();
  const kept: Set<number>[] = [];
  let fresh = 10_000;
  for (const [at, step] of steps.entries()) {
    let words = new Set(step.kind === 'add' ? step.words : []);
    if (step.kind === 'like' && kept.length > 0) {
      // The nearer to the threshold the better: some words out, some words in.
      const base = [...(kept[step.of % kept.length] ?? [])].reverse();
      words = new Set(base.slice(Math.min(step.drop, base.length)));
      for (let i = 0; i < step.more; i += 1) words.add(fresh++ % 7 === 0 ? i : fresh);
    }
    const set = setOf(words);
    const found = sets.find(set);
    const wanted = bruteForce(kept, words);
    if (JSON.stringify(found) !== JSON.stringify(wanted)) {
      return `step ${at}: found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`;
    }
    sets.add(set);
    kept.push(words);
  }
  return null;
};

const word = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 9 }) },
  { weight: 3, arbitrary: fc.integer({ min: 10, max: 60 }) },
  { weight: 1, arbitrary: fc.integer({ min: 61, max: 5_000 }) },
);
const add = fc.record({
  kind: fc.constant('add' as const),
  words: fc.array(word, { maxLength: 40 }),
});
const like = fc.record({
  kind: fc.constant('like' as const),
  ...{ of: fc.nat(500), drop: fc.nat(14), more: fc.nat(14) },
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: add },
  { weight: 5, arbitrary: like },
);

t.test('what is found is what comparing with every set finds', async (t) => {
  const property = fc.property(fc.array(step, { maxLength: 140, size: 'max' }), (steps) => {
    const problem = run(steps);
    if (problem !== null) throw new Error(problem);
  });
  await holds(t, property, { numRuns: 300 });
});

t.test('exactly three fifths is similar, and a hair below is not', async (t) => {
  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
  for (const [one, other, overlap] of [
    [3, 5, 3],
    [5, 3, 3],
    [80, 80, 60],
    [40, 40, 30],
    [100, 60, 60],
    [60, 100, 60],
    [1, 1, 1],
  ] as const) {
    t.equal(leastOverlap(one, other), overlap);
    const sets = new SimilarSets();
    sets.add(setOf(range(0, one)));
    t.same(
      sets.find(setOf(range(one - overlap, one - overlap + other))),
      { entry: 0, overlap, similarity: overlap / (one + other - overlap) },
      `${overlap} common of ${one} and ${other}`,
    );
    const below = setOf(range(one - overlap + 1, one - overlap + 1 + other));
    t.equal(sets.find(below), null, `${overlap - 1} common of ${one} and ${other}`);
  }
});

t.test('nothing is like nothing, and the order of the members does not matter', async (t) => {
  const sets = new SimilarSets();
  sets.add([]);
  t.equal(sets.find([]), null);
  t.equal(sets.find(setOf([1, 2])), null);
  const words = Array.from({ length: 50 }, (_, i) => i * 3);
  sets.add(setOf(words));
  t.match(sets.find(setOf([...words].reverse())), { entry: 1, similarity: 1 });
});

t.test('70,000 sets of 140,000 words are found as well as few', async (t) => {
  const sets = new SimilarSets();
  const wordsOf = (n: number): string[] => setOf([2 * n, 2 * n + 1, 2 * n + 200_000]);
  for (let n = 0; n < 70_000; n += 1) {
    const set = wordsOf(n);
    if (n % 1_000 === 0) t.equal(sets.find(set), null);
    sets.add(set);
  }
  for (const n of [0, 1, 40_000, 65_535, 65_536, 65_537, 69_999]) {
    t.same(sets.find(wordsOf(n)), { entry: n, overlap: 3, similarity: 1 });
  }
});
