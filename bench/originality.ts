import { checkReasoning } from '../src/features/predictions/gates.js';
import { QuestionMemory } from '../src/features/predictions/index.js';
import { leastOverlap } from '../src/features/predictions/originality.js';
import type { WordHashes } from '../src/kit/text.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/bench.js';
import { makeRandom, type Random } from './load/predict-texts.js';

/**
 * The cost of checking one prediction in an api process, with 100 and with 10,000 predictions on
 * the question. A check reads the text and compares its sources and words with the other texts.
 * The peer reads the text in the same way and compares it with every other text.
 */

const sizes = [100, 10_000] as const;
const texts_checked = 400;
const model_family = 'gpt';

interface Comparer {
  add(words: WordHashes, sources: readonly string[]): void;
  /** Returns true if the text is too similar to another. */
  check(words: WordHashes, sources: readonly string[]): boolean;
}

const makeSketches = (): Comparer => {
  const memory = new QuestionMemory('', 0);
  return {
    add: (words, sources) => void memory.add({ words, sources, model_family }),
    check: (words, sources) => memory.check({ words, sources, model_family }).length > 0,
  };
};

/**
 * Without sketches: compares the words of a text with the words of every other text, as fast as
 * possible. Words are small integers, sizes are compared first, and shared words are counted in
 * one table.
 */
const makeBruteForce = (): Comparer => {
  const ids = new Map<number, number>();
  const idOf = (word: number): number => {
    const id = ids.get(word) ?? ids.size;
    ids.set(word, id);
    return id;
  };
  const sets: Int32Array[] = [];
  /** By word id: the number of the last check in which the word occurred. */
  const seen = new Int32Array(1 << 20);
  let check = 0;
  return {
    add: (words) => void sets.push(Int32Array.from(words, (word) => idOf(word))),
    check(words) {
      check += 1;
      for (const word of words) seen[idOf(word)] = check;
      return sets.some((set) => {
        const least = leastOverlap(words.length, set.length);
        if (least > Math.min(words.length, set.length)) return false;
        let overlap = 0;
        for (let i = 0; i < set.length; i += 1) if (seen[set[i]!] === check) overlap += 1;
        return overlap >= least;
      });
    },
  };
};

const makeSubject = (
  name: string,
  comparer: Comparer,
  { size, seconds }: { readonly size: number; readonly seconds: number },
): Subject => {
  const texts = Array.from({ length: texts_checked }, (_, n) => makeText(1_000_000 + n));
  const round = async (): Promise<Sample> => {
    let checks = 0;
    let compare_ms = 0;
    const started_ms = performance.now();
    let spent_ms = 0;
    for (; spent_ms < seconds * 1_000; spent_ms = performance.now() - started_ms) {
      const { words, citation_keys } = checkReasoning(texts[checks % texts_checked]!);
      const before_ms = performance.now();
      if (comparer.check(words, citation_keys)) throw new Error(`${name}: a text was refused.`);
      compare_ms += performance.now() - before_ms;
      checks += 1;
    }
    return {
      per_second: (checks / spent_ms) * 1_000,
      check_us: (spent_ms / checks) * 1_000,
      compare_us: (compare_ms / checks) * 1_000,
    };
  };
  return {
    name,
    async warmUp() {
      for (let n = 0; n < size; n += 1) {
        const { words, citation_keys, failures } = checkReasoning(makeText(n));
        if (failures.length > 0) throw new Error(`Text ${n} fails: ${failures[0]?.message}`);
        comparer.add(words, citation_keys);
      }
      await round();
    },
    round,
  };
};

const syllables =
  'ba co di fu ge ha jo ki lu me na po ri su te va bra cle dro fli gru pla sto tri'.split(' ');

/** A different word for each `n`, with at least two syllables. */
const wordOf = (n: number): string => {
  const rest = Math.floor(n / syllables.length);
  const last = syllables[n % syllables.length]!;
  return n < syllables.length ** 2 ? last + syllables[rest] : last + wordOf(rest);
};

/**
 * A word of an open vocabulary. As in any language, a few words occur in nearly every text and most
 * words are rare (Zipf–Mandelbrot: the n-th most frequent of 40,000 has a weight of 1/(n + 8)).
 */
const draw = (random: Random): string => wordOf(Math.floor(8 * (40_008 / 8) ** random() - 8));

/** Reasoning with four sections in an open vocabulary. Text `n` is always the same. */
const makeText = (n: number): string => {
  const random = makeRandom(n);
  const sentence = (words: number) =>
    `${Array.from({ length: words }, () => draw(random)).join(' ')}.`;
  const part = () => `${sentence(14)} ${sentence(16)}`;
  const url = (which: string) => `https://${draw(random)}.org/${draw(random)}-${n}${which}`;
  return (
    `EVIDENCE: ${part()} See ${url('a')} and ${url('b')}.\n\nANALYSIS: ${part()}\n\n` +
    `COUNTER-EVIDENCE: ${part()}\n\nBOTTOM LINE: ${part()}`
  );
};

export const bench: Bench = {
  question: 'How long does it take to check a text against 10,000 others, and against 100?',
  figures: {
    cost_10000_over_100: { of: ratioOf('sketches_10000', 'sketches_100', 'check_us'), max: 12 },
    brute_10000_over_100: { of: ratioOf('brute_10000', 'brute_100', 'check_us') },
    brute_over_sketches_at_10000: {
      of: ratioOf('brute_10000', 'sketches_10000', 'compare_us'),
      min: 20,
    },
    check_us_at_10000: { of: figureOf('sketches_10000', 'check_us') },
  },
  async prepare({ seconds }) {
    const subjects = sizes.flatMap((size) => [
      makeSubject(`sketches_${size}`, makeSketches(), { size, seconds }),
      makeSubject(`brute_${size}`, makeBruteForce(), { size, seconds }),
    ]);
    return [() => subjects];
  },
};
