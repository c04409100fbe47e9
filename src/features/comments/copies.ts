/** Texts that say the same again: within themselves, and as copies of each other. */

const token = /[\p{L}\p{M}\p{N}]+/gu;

/** Words and numbers in order, folded. */
export const tokensOf = (text: string): readonly string[] =>
  text.toLowerCase().match(token)?.map(String) ?? [];

const repetitive_from = 12;
/** A sentence that stands there three times has at most a third of different words. */
const repetitive_share = 0.34;

export const isRepetitive = (tokens: readonly string[]): boolean =>
  tokens.length >= repetitive_from && new Set(tokens).size <= repetitive_share * tokens.length;

/** From this Jaccard similarity of the sets of words and numbers on, 0 to 1, it is a near-copy. */
const copy_similarity = 0.9;

/**
 * Whether a text nearly copies one whose different tokens are `own`. Of a copy at most a ninth as
 * many tokens are foreign to the other, so that most texts are known not to be one after a few.
 */
export const isCopyOf = (own: ReadonlySet<string>, text: string): boolean => {
  const most_foreign = own.size * (1 / copy_similarity - 1) + 1;
  const folded = text.toLowerCase();
  const shared = new Set<string>();
  const foreign = new Set<string>();
  token.lastIndex = 0;
  for (let found = token.exec(folded); found !== null; found = token.exec(folded)) {
    const [one] = found;
    if (own.has(one)) shared.add(one);
    else if (foreign.add(one).size > most_foreign) return false;
  }
  const all = own.size + foreign.size;
  return all === 0 || shared.size / all >= copy_similarity;
};

export const signature_words = 4;
/** Small integers of V8 have 31 bits with their sign. */
const word_bits = 30;

/** A few bits for each token of a text; none of another text sets bits that its tokens do not. */
export type Signature = readonly number[];

export const signatureOf = (tokens: readonly string[]): Signature => {
  const signature = [0, 0, 0, 0];
  for (const one of tokens) {
    let hash = 0;
    const { length } = one;
    for (let at = 0; at < length; at += 1) {
      hash = Math.imul(hash ^ one.charCodeAt(at), 0x01000193) + at;
    }
    const bit = ((hash ^ (hash >>> 15)) >>> 0) % (signature_words * word_bits);
    const word = (bit / word_bits) | 0;
    signature[word] = (signature[word] as number) | (1 << (bit % word_bits));
  }
  return signature;
};

const countBits = (word: number): number => {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
};

/**
 * False only where the one does not nearly copy the other, whose signature begins at `from`: each
 * bit that differs is of a token that one has and the other has not, and of those a copy has at
 * most a ninth of its tokens.
 */
export const mayBeCopy = (
  own: { readonly tokens: readonly string[]; readonly signature: Signature },
  other: Signature,
  from = 0,
): boolean => {
  let foreign = 0;
  for (let word = 0; word < signature_words; word += 1) {
    foreign += countBits((own.signature[word] as number) ^ (other[from + word] as number));
  }
  return foreign <= own.tokens.length * (1 / copy_similarity - 1) + 1;
};
