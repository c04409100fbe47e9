import { toLine, toNormalForm } from './text.js';

/**
 * Names that people type, such as names of agents and options, and when two such names are equal.
 */

/**
 * Characters that a reader could not see, or that would change how the text around them reads:
 * control, format (bidi, zero-width, tags), private-use and unpaired surrogate characters, line
 * separators, everything that fonts may leave invisible, and the empty Braille pattern.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const all_unseen = new RegExp(`(?![\\t\\n\\r])${unseen.source}`, 'gu');

export const hasUnseen = (text: string): boolean => unseen.test(text);

/**
 * Two names are the same if their folds are equal. A fold is the Unicode compatibility form (NFKC)
 * with a full case fold (down, up and down again), so that ß and ẞ equal ss and ſ equals s. A run
 * of blanks counts as one, and invisible characters do not count. Full-width and mathematical
 * letters equal the plain ones. Look-alikes from another script (Cyrillic а) do not.
 */
export const foldName = (name: string): string =>
  toNormalForm(toNormalForm(name, 'NFKC').toLowerCase().toUpperCase().toLowerCase(), 'NFKC')
    .replace(all_unseen, '')
    .replace(/\s+/gu, ' ')
    .trim();

/** Returns the index of a name: an exact match if there is one, else a match by fold, else -1. */
export const findName = (text: string, names: readonly string[]): number => {
  const wanted = toLine(text);
  const exact = names.indexOf(wanted);
  if (exact !== -1) return exact;
  const folded = foldName(text);
  return names.findIndex((name) => foldName(name) === folded);
};
