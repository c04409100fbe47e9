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
