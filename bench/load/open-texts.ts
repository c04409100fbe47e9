import { makeRandom, type Random } from './predict-texts.js';

/**
 * Reasonings in an open vocabulary: as in any language, few words are in nearly every text and most
 * words are rare (Zipf–Mandelbrot, the n-th most frequent of 40,000 with a weight of 1/(n + 8)).
 * Words are made of syllables. Text `n` is always the same text.
 */

const vocabulary = 40_000;
const syllables = [
  ...[
    'ba',
    'co',
    'di',
    'fu',
    'ge',
    'ha',
    'jo',
    'ki',
    'lu',
    'me',
    'na',
    'po',
    'ri',
    'su',
    'te',
    'va',
  ],
  ...['bra', 'cle', 'dro', 'fli', 'gru', 'pla', 'sto', 'tri'],
] as const;

/** Different for different `n`; at least four letters. */
const wordOf = (n: number): string => {
  let rest = n;
  let word = '';
  for (let i = 0; i < 2 || rest > 0; i += 1) {
    word += syllables[rest % syllables.length];
    rest = Math.floor(rest / syllables.length);
  }
  return word;
};

const cumulated = new Float64Array(vocabulary);
let sum = 0;
for (let n = 0; n < vocabulary; n += 1) {
  sum += 1 / (n + 8);
  cumulated[n] = sum;
}

const draw = (random: Random): string => {
  const at = random() * sum;
  let low = 0;
  let high = vocabulary - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cumulated[middle]! < at) low = middle + 1;
    else high = middle;
  }
  return wordOf(low);
};

const sentence = (random: Random, words: number): string =>
  `${Array.from({ length: words }, () => draw(random)).join(' ')}.`;

export const makeOpenReasoning = (n: number): string => {
  const random = makeRandom(n + 77_000_001);
  const page = (which: string): string =>
    `https://${draw(random)}.org/${draw(random)}-${n}${which}`;
  const part = (): string => `${sentence(random, 14)} ${sentence(random, 16)}`;
  return (
    `EVIDENCE: ${part()} See ${page('a')} and ${page('b')}.\n\nANALYSIS: ${part()}\n\n` +
    `COUNTER-EVIDENCE: ${part()}\n\nBOTTOM LINE: ${part()}`
  );
};
