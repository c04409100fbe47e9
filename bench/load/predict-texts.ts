/**
 * Texts in an open vocabulary: as in any language, few words are in nearly every text and most words
 * are rare (Zipf–Mandelbrot: the n-th most frequent of 40,000 has a weight of 1/(n + 8)). Text `n`
 * is always the same text, and no two are alike.
 */

type Random = () => number;

/** sfc32 (Chris Doty-Humphrey), stirred a few times so that neighbouring seeds part at once. */
const makeRandom = (seed: number): Random => {
  let a = seed | 0;
  let b = Math.imul(seed, 0x9e3779b1);
  let c = 0x5bf03635;
  let counter = 1;
  const next = (): number => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  };
  for (let i = 0; i < 12; i++) next();
  return next;
};

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
export const makeReasoning = (n: number): string => {
  const random = makeRandom(n);
  const url = (which: string): string => `https://${draw(random)}.org/${draw(random)}-${n}${which}`;
  const part = (): string => `${sentence(random, 14)} ${sentence(random, 16)}`;
  return (
    `EVIDENCE: ${part()} See ${url('a')} and ${url('b')}.\n\nANALYSIS: ${part()}\n\n` +
    `COUNTER-EVIDENCE: ${part()}\n\nBOTTOM LINE: ${part()}`
  );
};

/** A stated confidence that is not always the same. */
export const makeConfidence = (n: number): number =>
  51 + ((Math.imul(n, 2_654_435_761) >>> 8) % 45);

/** Some 200 characters. */
export const makeComment = (n: number): string => `Note ${n}: ${sentence(makeRandom(n), 28)}`;
