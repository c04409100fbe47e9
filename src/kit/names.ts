import { toLine, toNormalForm } from './text.js';

/** Names that people type, such as those of agents and options, and when two of them are the same. */

/**
 * Characters that a reader could not see, or that would change how the text around them reads:
 * control, format (bidi, zero-width, tags), private-use and unpaired surrogate characters, line
 * separators, everything that fonts may leave invisible, and the empty Braille pattern.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const all_unseen = new RegExp(`(?![\\t\\n\\r])${unseen.source}`, 'gu');

export const hasUnseen = (text: string): boolean => unseen.test(text);

/**
 * Two names are the same when their folds are: Unicode compatibility form (NFKC), then a full case
 * fold, down, up and down again, so that ß and ẞ meet ss and ſ meets s. Runs of any blanks count as
 * one, and what cannot be seen does not count. Full-width and mathematical letters meet the plain
 * ones; letters of another script that merely look alike (Cyrillic а) do not.
 */
export const foldName = (name: string): string =>
  toNormalForm(toNormalForm(name, 'NFKC').toLowerCase().toUpperCase().toLowerCase(), 'NFKC')
    .replace(all_unseen, '')
    .replace(/\s+/gu, ' ')
    .trim();

/** The place of a name among others: to the letter if it is there so, else by its fold; or -1. */
export const findName = (text: string, names: readonly string[]): number => {
  const wanted = toLine(text);
  const exact = names.indexOf(wanted);
  if (exact !== -1) return exact;
  const folded = foldName(text);
  return names.findIndex((name) => foldName(name) === folded);
};
