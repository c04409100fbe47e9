import fc from 'fast-check';
import { t } from 'tap';
import { checkReasoning, readWords } from '../../../src/features/predictions/gates.js';
import { findHeadings } from '../../../src/features/predictions/reasoning.js';
import { SimilarSets } from '../../../src/kit/similar-sets.js';
import { findLinks } from '../../../src/kit/text.js';
import { holds } from '../../help/property.js';
import { in_scripts } from './scripts.js';

/**
 * Gate 6 beside its definition, written down once more and differently: the words of the text in
 * NFKC as texts, and every pair compared.
 */

const blank = (text: string, from: number, to: number): string =>
  text.slice(0, from) + '\n'.repeat(to - from) + text.slice(to);

const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const dense = /\p{sc=Hang}/u;
const segmenter = new Intl.Segmenter('und', { granularity: 'word' });

/** What the script of a run takes for words. */
const cut = (run: string): string[] =>
  unspaced.test(run) ? [...segmenter.segment(run)].map(({ segment }) => segment) : [run];

/**
 * Four letters or more, or two of some scripts; marks and invisible characters belong to a word and
 * count as none.
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

/** The text itself with its words in another order, some left out and some put in. */
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
  // 60 of 100 is similar; with one more word of its own it is 60 of 101.
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
