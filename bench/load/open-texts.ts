import { makeRandom, type Random } from './predict-texts.js';

/**
 * Texts in an open vocabulary: as in any language, few words are in nearly every text and most words
 * are rare (Zipf–Mandelbrot: the n-th most frequent of 40,000 has a weight of 1/(n + 8)). Text `n`
 * is always the same text, and no two are alike.
 */

const syllables =
  'ba co di fu ge ha jo ki lu me na po ri su te va bra cle dro fli gru pla sto tri'.split(' ');

/** Different for different `n`; at least two syllables. */
const wordOf = (n: number): string => {
  let word = '';
  for (let rest = n, i = 0; i < 2 || rest > 0; i++) {
    word += syllables[rest % syllables.length];
    rest = Math.floor(rest / syllables.length);
  }
  return word;
};

/** Draws with the weights above: the inverse of their (continuous) distribution. */
const draw = (random: Random): string => wordOf(Math.floor(8 * (40_008 / 8) ** random() - 8));

const sentence = (random: Random, words: number): string =>
  `${Array.from({ length: words }, () => draw(random)).join(' ')}.`;

/** A reasoning as agents write them: four sections, some 900 characters, two sources of its own. */
export const makeOpenReasoning = (n: number): string => {
  const random = makeRandom(n);
  const url = (which: string): string => `https://${draw(random)}.org/${draw(random)}-${n}${which}`;
  const part = (): string => `${sentence(random, 14)} ${sentence(random, 16)}`;
  return (
    `EVIDENCE: ${part()} See ${url('a')} and ${url('b')}.\n\nANALYSIS: ${part()}\n\n` +
    `COUNTER-EVIDENCE: ${part()}\n\nBOTTOM LINE: ${part()}`
  );
};
