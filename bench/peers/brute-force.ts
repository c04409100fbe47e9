import { leastOverlap } from '../../src/features/predictions/originality.js';

/**
 * Gate 6 without an index: the text beside each other text. As fast as that can be: words are
 * numbers, the sizes are looked at first, and what is common is counted by stamps.
 */
export const makeBruteForce = () => {
  const ids = new Map<string, number>();
  const sets: Int32Array[] = [];
  let stamps = new Int32Array(1 << 17);
  let mark = 0;

  const idOf = (word: string): number => {
    let id = ids.get(word);
    if (id === undefined) {
      id = ids.size;
      ids.set(word, id);
    }
    return id;
  };

  return {
    add(words: readonly string[]): void {
      sets.push(Int32Array.from(words, idOf));
    },
    check(words: readonly string[]): boolean {
      mark += 1;
      if (ids.size + words.length > stamps.length) {
        const grown = new Int32Array(2 * stamps.length);
        grown.set(stamps);
        stamps = grown;
      }
      for (const word of words) stamps[idOf(word)] = mark;
      for (const set of sets) {
        const least = leastOverlap(words.length, set.length);
        if (least > words.length || least > set.length) continue;
        let overlap = 0;
        for (let i = 0; i < set.length; i += 1) if (stamps[set[i]!] === mark) overlap += 1;
        if (overlap >= least) return true;
      }
      return false;
    },
  };
};
