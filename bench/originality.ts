import { checkReasoning, QuestionMemory } from '../src/features/predictions/index.js';
import {
  type Bench,
  figureOf,
  type Prepared,
  ratioOf,
  type Sample,
  type Subject,
} from './frame/types.js';
import { makeOpenReasoning } from './load/open-texts.js';
import { makeReasoning } from './load/predict-texts.js';
import { makeBruteForce } from './peers/brute-force.js';

/**
 * What the gates of one prediction cost an api process, with 100 and with 10,000 predictions on the
 * question: reading the text (gates 1 to 4 and 7), and comparing it with the others (5 and 6). The
 * peer reads the text in the same way and compares it with each. `open`: texts in an open
 * vocabulary, as in any language; `closed`: those of the load, which draw from some 800 words.
 */

const sizes = [100, 10_000] as const;
const texts_checked = 400;

type MakeText = (n: number) => string;

interface Comparer {
  add(words: readonly string[], sources: readonly string[], n: number): void;
  /** Whether anything speaks against it. */
  check(words: readonly string[], sources: readonly string[]): boolean;
}

const model_family = 'gpt';

const makeIndex = (): Comparer => {
  const memory = new QuestionMemory('', 0);
  return {
    add(words, sources) {
      memory.add({ words, sources, model_family });
    },
    check: (words, sources) => memory.check({ words, sources, model_family }).length > 0,
  };
};

interface Filled {
  readonly comparer: Comparer;
  readonly makeText: MakeText;
  readonly size: number;
}

const fill = ({ comparer, makeText, size }: Filled): void => {
  for (let n = 0; n < size; n += 1) {
    const { words, citation_keys, failures } = checkReasoning(makeText(n));
    if (failures.length > 0) throw new Error(`Text ${n} does not pass: ${failures[0]?.message}`);
    comparer.add(words, citation_keys, n);
  }
};

const makeSubject = (name: string, filled: Filled, seconds: number): Subject => {
  const texts: string[] = [];
  const run = (for_s: number): Sample => {
    let checks = 0;
    let compare_ms = 0;
    const started_ms = performance.now();
    let now_ms = started_ms;
    while (now_ms - started_ms < for_s * 1_000) {
      for (const text of texts) {
        const { words, citation_keys } = checkReasoning(text);
        const before_ms = performance.now();
        const is_refused = filled.comparer.check(words, citation_keys);
        compare_ms += performance.now() - before_ms;
        if (is_refused) throw new Error(`${name}: a text of its own was refused.`);
        checks += 1;
        if ((checks & 15) === 0 && performance.now() - started_ms > for_s * 1_000) break;
      }
      now_ms = performance.now();
    }
    const spent_ms = now_ms - started_ms;
    return {
      per_second: (checks / spent_ms) * 1_000,
      check_us: (spent_ms / checks) * 1_000,
      compare_us: (compare_ms / checks) * 1_000,
    };
  };
  return {
    name,
    async warmUp() {
      for (let n = 0; n < texts_checked; n += 1) texts.push(filled.makeText(1_000_000 + n));
      fill(filled);
      run(Math.min(1, seconds));
    },
    round: async () => run(seconds),
  };
};

const prepare = (seconds: number): Prepared => {
  const subjects: Subject[] = [];
  for (const size of sizes) {
    const add = (kind: string, comparer: Comparer, makeText: MakeText): void => {
      subjects.push(makeSubject(`${kind}_${size}`, { comparer, makeText, size }, seconds));
    };
    add('open', makeIndex(), makeOpenReasoning);
    add('closed', makeIndex(), makeReasoning);
    add('brute', makeBruteForce(), makeOpenReasoning);
  }
  return { stages: [() => ({ subjects })], missing: [], close: async () => undefined };
};

export const originality: Bench = {
  name: 'originality',
  question: 'What does it cost to check a text against 10,000 others, and against 100?',
  ratios: {
    cost_10000_over_100: ratioOf('open_10000', 'open_100', 'check_us'),
    closed_10000_over_100: ratioOf('closed_10000', 'closed_100', 'check_us'),
    brute_10000_over_100: ratioOf('brute_10000', 'brute_100', 'check_us'),
    brute_over_index_at_10000: ratioOf('brute_10000', 'open_10000', 'compare_us'),
  },
  figures: { check_us_at_10000: figureOf('open_10000', 'check_us') },
  prepare: async ({ seconds }) => prepare(seconds),
};
