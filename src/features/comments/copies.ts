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

/** From this similarity on a comment is a near-copy. */
export const copy_similarity = 0.9;

/** Jaccard similarity of the sets of words and numbers, 0 to 1. */
export const similarity = (a: ReadonlySet<string>, b: ReadonlySet<string>): number => {
  if (a.size === 0 && b.size === 0) return 1;
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  let shared = 0;
  for (const one of small) if (large.has(one)) shared += 1;
  return shared / (a.size + b.size - shared);
};
