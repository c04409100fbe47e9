import { leastOverlap } from '../../src/kit/similar-sets.js';

/**
 * Gate 6 without an index: the text is compared with each other text. As fast as that can be: words are
 * numbers, sizes are compared first, and common words are counted in one table.
 */
export const makeBruteForce = () => {
  const ids = new Map<string, number>();
  const sets: Int32Array[] = [];
  const idOf = (word: string): number => {
    const id = ids.get(word) ?? ids.size;
    ids.set(word, id);
    return id;
  };
  /** The last check in which a word occurred, by its id. */
  const seen = new Int32Array(1 << 20);
  let check = 0;
  return {
    add: (words: readonly string[]): void => void sets.push(Int32Array.from(words, idOf)),
    check(words: readonly string[]): boolean {
      check += 1;
      for (const word of words) seen[idOf(word)] = check;
      return sets.some((set) => {
        const least = leastOverlap(words.length, set.length);
        if (least > words.length || least > set.length) return false;
        let overlap = 0;
        for (let i = 0; i < set.length; i += 1) if (seen[set[i]!] === check) overlap += 1;
        return overlap >= least;
      });
    },
  };
};
