import fc from 'fast-check';
import { checkReasoning, readWords } from '../../../src/features/predictions/gates.js';
import {
  leastOverlap,
  type SimilarSet,
  SimilarSets,
} from '../../../src/features/predictions/originality.js';
import { findHeadings } from '../../../src/features/predictions/reasoning.js';
import { findLinks } from '../../../src/kit/text.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';
import { in_scripts } from './scripts.js';

/**
 * The gate for similar texts agrees with a second implementation of its definition, which reads
 * words as strings from the NFKC text and compares every pair.
 */

const blank = (text: string, from: number, to: number): string =>
  text.slice(0, from) + '\n'.repeat(to - from) + text.slice(to);

const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const dense = /\p{sc=Hang}/u;
const segmenter = new Intl.Segmenter('und', { granularity: 'word' });

/** Cuts a run of characters into words. Scripts without spaces need a segmenter. */
const cut = (run: string): string[] =>
  unspaced.test(run) ? [...segmenter.segment(run)].map(({ segment }) => segment) : [run];

/**
 * Words have at least four letters, or two in some scripts. Marks and invisible characters belong
 * to a word but do not count as letters.
 */
const wordsOf = (reasoning: string): Set<string> => {
  let text = reasoning.normalize('NFKC');
  const links = findLinks(text);
  for (const { start, end } of findHeadings(text)) text = blank(text, start, end);
  for (let i = 0; i < links.length; i += 2) text = blank(text, links[i]!, links[i + 1]!);
  const found = text.match(/\p{L}[\p{L}\p{M}\p{Cf}]*/gu) ?? [];
  const words = new Set<string>();
  for (const one of found) {
    for (const plain of cut(one.replaceAll(/\p{Cf}/gu, ''))) {
      const least = unspaced.test(plain) || dense.test(plain) ? 2 : 4;
      if ((plain.match(/\p{L}/gu) ?? []).length < least) continue;
      words.add([...plain].map((char) => char.toLowerCase().replace('ς', 'σ')).join(''));
    }
  }
  return words;
};

const similarity = (one: ReadonlySet<string>, other: ReadonlySet<string>): number => {
  let overlap = 0;
  for (const word of one) if (other.has(word)) overlap += 1;
  const union = one.size + other.size - overlap;
  return 5 * overlap >= 3 * union && overlap > 0 ? overlap / union : 0;
};

const stems = [
  ...'harbour Überraschung ΣΊΣΥΦΟΣ ﬁnance Ｗｉｄｅ naïvely cafe\u0301s straße прогноз'.split(' '),
  ...'ПРОГНОЗЫ tariff TARIFF zero\u200bwidth κόσμος don’t 予測市場調査 x²y'.split(' '),
  ...'根据统计局公布的数据 国内生产\u200b总值gdp增长 かどうかはデータ次第 수출 𠀋𠮷野家'.split(' '),
  ...'เศรษฐกิจไทยขยายตัว 경제성장률은 quarter reactor ballot ceasefire e\u0301lan'.split(' '),
  ...'𝐛𝐨𝐥𝐝𝐥𝐲 İstanbul … ½'.split(' '),
];
const word = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...stems) },
  { weight: 6, arbitrary: fc.stringMatching(/^[a-z]{4,5}$/) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 6 }) },
);
const separator = fc.constantFrom(' ', ', ', '\n', ' – ', '. ', '/', '-', ' ANALYSIS\n', ' (1) ');

const text = fc
  .array(fc.tuple(word, separator), { minLength: 1, maxLength: 90 })
  .map((parts) => parts.flat().join(''));

/** A variant of the text with its words reordered, some removed and some added. */
const variant = fc.record({
  of: fc.nat(30),
  seed: fc.nat(1_000),
  drop: fc.nat(20),
  more: fc.nat(20),
  upper: fc.boolean(),
});

const vary = (base: string, how: { seed: number; drop: number; more: number; upper: boolean }) => {
  const words = [...base.split(/\s+/)];
  for (let i = words.length - 1; i > 0; i -= 1) {
    const j = (how.seed * 31 + i * 17) % (i + 1);
    [words[i], words[j]] = [words[j]!, words[i]!];
  }
  const kept = words.slice(Math.min(how.drop, words.length - 1));
  const fresh = Array.from({ length: how.more }, (_, i) => `fresh${'abcdefghijklmnopqrstu'[i]}qq`);
  const made = [...kept, ...fresh].join(' ');
  return how.upper ? made.toUpperCase() : made;
};

t.test('the words are those of the definition, and so is what is similar', async (t) => {
  let similar = 0;
  let apart = 0;
  const property = fc.property(
    fc.array(text, { minLength: 1, maxLength: 8 }),
    fc.array(variant, { maxLength: 30 }),
    (texts, variants) => {
      const all = [...texts];
      for (const how of variants) all.push(vary(all[how.of % all.length]!, how));
      const sets = new SimilarSets();
      const kept: Set<string>[] = [];
      for (const [n, one] of all.entries()) {
        const words = wordsOf(one);
        const read = readWords(one);
        if (read.length !== words.size) {
          throw new Error(`${read.length} words, not ${words.size}: ${JSON.stringify(one)}`);
        }
        const found = sets.find(read);
        const best = Math.max(0, ...kept.map((other) => similarity(words, other)));
        if ((found?.similarity ?? 0) !== best) {
          throw new Error(`text ${n}: ${found?.similarity}, not ${best}`);
        }
        if (best > 0) similar += 1;
        else apart += 1;
        sets.add(read);
        kept.push(words);
      }
    },
  );
  await holds(t, property, { numRuns: 500 });
  t.ok(similar > 100 && apart > 100, `${similar} similar, ${apart} apart`);
});

t.test('a text has the same words with the other gates and without them', async (t) => {
  const property = fc.property(text, (one) => {
    const stored = checkReasoning(one);
    const again = readWords(stored.text);
    return JSON.stringify([...stored.words].sort()) === JSON.stringify([...again].sort());
  });
  await holds(t, property, { numRuns: 500 });
});

t.test('one word makes the difference, in either direction', async (t) => {
  const names = Array.from({ length: 160 }, (_, i) => {
    const letters = 'abcdefghijklmnop';
    return `word${letters[i >> 4]}${letters[i & 15]}`;
  });
  // The texts share 60 of 100 words. With one more different word, they share 60 of 101.
  const earlier = names.slice(0, 80).join(' ');
  const sets = new SimilarSets();
  sets.add(readWords(earlier));
  const at = names.slice(20, 100);
  t.equal(sets.find(readWords(at.join(' ')))?.similarity, 0.6);
  t.equal(sets.find(readWords([...at, names[120]].join(' '))), null);
  t.equal(sets.find(readWords([...at.slice(1)].join(' '))), null, '59 of 100');
  t.equal(sets.find(readWords(at.toReversed().join('\n').toUpperCase()))?.similarity, 0.6);
});

t.test('texts without blanks are compared by their words', async (t) => {
  for (const [script, text] of Object.entries(in_scripts)) {
    const sets = new SimilarSets();
    for (const [other, one] of Object.entries(in_scripts)) {
      if (other !== script) sets.add(readWords(one));
    }
    t.equal(sets.find(readWords(text)), null, `${script}: those in other scripts are not like it`);
    const own = readWords(text);
    sets.add(own);
    t.equal(sets.find(readWords(text))?.similarity, 1, script);
    const [first = '', second = '', ...rest] = text.split('\n');
    const shortened = `${second}\n${rest.join('\n')}\n${first.slice(0, first.length / 2)}`;
    t.ok((sets.find(readWords(shortened))?.similarity ?? 0) > 0.6, `${script}: in another order`);
  }
});

/** Numbers are used instead of hashes. The lowest byte selects the bit in the sketch. */
const setOf = (words: Iterable<number>): Float64Array => Float64Array.from(new Set(words)).sort();

/** The reference answer: compares the set with every other one, in exact fractions. */
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
      // Removes some words and adds some, which keeps the set near the threshold.
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

const number = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 9 }) },
  { weight: 3, arbitrary: fc.integer({ min: 10, max: 60 }) },
  { weight: 1, arbitrary: fc.integer({ min: 61, max: 5_000 }) },
);
const add = fc.record({
  kind: fc.constant('add' as const),
  words: fc.array(number, { maxLength: 40 }),
});
const like = fc.record({
  kind: fc.constant('like' as const),
  of: fc.nat(500),
  drop: fc.nat(14),
  more: fc.nat(14),
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

/** Sets that sketches can hardly distinguish: up to 1,000 words, some of which share a bit. */
const hard_set = fc
  .record({
    from: fc.integer({ min: 0, max: 400 }),
    size: fc.oneof(fc.constantFrom(0, 1, 3, 5, 36, 60, 100, 600, 1_000), fc.nat(40)),
    /** Numbers that differ by 256 share a bit. */
    step: fc.constantFrom(1, 1, 3, 64, 256),
  })
  .map(({ from, size, step }) => Array.from({ length: size }, (_, n) => step * (from + n)));

t.test(
  'sets with shared bits, of sizes at the bounds, equal and empty ones are found',
  async (t) => {
    const property = fc.property(fc.array(hard_set, { maxLength: 30 }), (sets) => {
      const problem = run(sets.map((words) => ({ kind: 'add', words })));
      if (problem !== null) throw new Error(problem);
    });
    await holds(t, property, { numRuns: 300 });
  },
);

t.test('the size grows with the sets and what they have', async (t) => {
  const sets = new SimilarSets();
  t.equal(sets.bytes, 0);
  sets.add(setOf([1, 2, 3]));
  const small = sets.bytes;
  sets.add(setOf(Array.from({ length: 100 }, (_, n) => n)));
  t.equal(sets.bytes - 2 * small, 8 * 97);
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

t.test('nothing is like nothing, and a set is like itself', async (t) => {
  const sets = new SimilarSets();
  sets.add(setOf([]));
  t.equal(sets.find(setOf([])), null);
  t.equal(sets.find(setOf([1, 2])), null);
  const words = Array.from({ length: 50 }, (_, i) => i * 3);
  sets.add(setOf(words));
  t.match(sets.find(setOf(words)), { entry: 1, similarity: 1 });
});

t.test('70,000 sets of 140,000 words are found as well as few', async (t) => {
  const sets = new SimilarSets();
  const wordsOf = (n: number): Float64Array => setOf([2 * n, 2 * n + 1, 2 * n + 200_000]);
  for (let n = 0; n < 70_000; n += 1) {
    const set = wordsOf(n);
    if (n % 1_000 === 0) t.equal(sets.find(set), null);
    sets.add(set);
  }
  for (const n of [0, 1, 40_000, 65_535, 65_536, 65_537, 69_999]) {
    t.same(sets.find(wordsOf(n)), { entry: n, overlap: 3, similarity: 1 });
  }
});

t.test('what is taken out again leaves nothing behind', async (t) => {
  const texts = Array.from({ length: 40 }, (_, n) =>
    readWords(
      Array.from(
        { length: 30 },
        (_, k) => `word${'abcdefghij'[(n * k) % 10]}${'klmno'[n % 5]}`,
      ).join(' '),
    ),
  );
  const sets = new SimilarSets();
  for (const set of texts.slice(0, 20)) sets.add(set);
  const { bytes } = sets;
  const found = texts.map((set) => sets.find(set));
  for (const set of texts.slice(20)) sets.add(set);
  for (const _ of texts.slice(20)) sets.removeLast();
  t.equal(sets.bytes, bytes);
  t.same(
    texts.map((set) => sets.find(set)),
    found,
  );
  t.equal(sets.add(texts[20]!), 20);
});
