import { toNormalForm } from '../../kit/text.js';
import { type ModelFamily, model_families, modelFamily } from '../taxonomy/model-family.js';

/** Rules of the search that need no store: families, documents and the correction of a word. */

/**
 * Returns the words of a text as `search_fold` of `sql/0013_search.sql` writes them, for texts in
 * English: small letters without marks, and letters apart from digits.
 */
export const wordsOf = (text: string): readonly string[] =>
  toNormalForm(text, 'NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .match(/\p{L}+|\p{N}+/gu) ?? [];

/** Families whose makers people search for by name. */
const makers: Readonly<Record<string, ModelFamily>> = {
  openai: 'gpt',
  chatgpt: 'gpt',
  anthropic: 'claude',
  google: 'gemini',
  meta: 'llama',
  xai: 'grok',
  alibaba: 'qwen',
  cohere: 'command',
  microsoft: 'phi',
  amazon: 'nova',
  zhipu: 'glm',
  moonshot: 'kimi',
};

/** Words that the search knows without any question or agent. */
export const family_words: readonly string[] = [...model_families, ...Object.keys(makers)];

const longest_name = 4;

/** Returns the families that a text of few words names, by a family, its maker or a model. */
export const familiesOf = (text: string): readonly ModelFamily[] => {
  const words = wordsOf(text);
  const [first = ''] = words;
  if (first === '' || words.length > longest_name) return [];
  const known = [modelFamily(text.trim()), makers[first]];
  const begun =
    words.length === 1 && first.length > 1
      ? model_families.filter((family) => family.startsWith(first))
      : [];
  return model_families.filter(
    (family) => family !== 'other' && (known.includes(family) || begun.includes(family)),
  );
};

/** A section of a document. Its words stand between blanks. */
export interface Section {
  readonly title: string;
  readonly heading: string | null;
  readonly path: string;
  readonly heading_words: string;
  readonly words: string;
}

/** A word of at least three letters may be the beginning of a longer one. */
const placeOf = (word: string): string => (/^\p{L}{3}/u.test(word) ? ` ${word}` : ` ${word} `);

/** Returns the sections that contain all words of a text, those with all in the headings first. */
export const matchSections = (all: readonly Section[], text: string): readonly Section[] => {
  const wanted = wordsOf(text).map(placeOf);
  if (wanted.length === 0) return [];
  const hasAll = (words: string): boolean => wanted.every((place) => words.includes(place));
  const named = all.filter(({ heading_words }) => hasAll(heading_words));
  return [...named, ...all.filter((one) => !named.includes(one) && hasAll(one.words))];
};

/**
 * Returns how many typing errors separate two words: letters that are wrong, missing, too many or
 * swapped with their neighbour (optimal string alignment). With `is_prefix`, the best beginning of
 * `wanted` is compared.
 */
export const countErrors = (given: string, wanted: string, is_prefix = false): number => {
  const [a, b] = [[...given], [...wanted]];
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const is_same = a[i - 1] === b[j - 1];
      const is_swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(
          (last[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (last[j - 1] ?? 0) + (is_same ? 0 : 1),
          is_swapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = last;
    last = row;
  }
  return is_prefix ? Math.min(...last) : (last[b.length] ?? 0);
};

/** Words from this length on may have two errors, shorter ones one. */
const long_word = 9;

/** Returns the word with the fewest errors, or null if all have too many. The first of equals wins. */
export const closestWord = (
  given: string,
  candidates: readonly string[],
  is_last: boolean,
): string | null => {
  const most = given.length >= long_word ? 2 : 1;
  const is_begun = is_last && given.length > 3;
  const counted = candidates
    // A difference in length is at least as many errors.
    .filter(
      (word) =>
        given.length - word.length <= most && (is_begun || word.length - given.length <= most),
    )
    .map((word) => {
      const errors = countErrors(given, word);
      // A beginning of a word is a weaker match than a whole word.
      const begun = is_begun ? countErrors(given, word, true) + 0.5 : errors;
      return { word, errors: Math.min(errors, begun) };
    })
    .filter(({ errors }) => errors > 0 && errors <= most + 0.5)
    .sort((a, b) => a.errors - b.errors);
  return counted[0]?.word ?? null;
};

/**
 * Returns the words with two neighbouring characters swapped. Their trigrams differ too much for
 * an index of similar words.
 */
export const swappedWords = (word: string): readonly string[] => {
  const characters = [...word];
  return characters.slice(1).map((next, n) => {
    const swapped = [...characters];
    swapped[n + 1] = characters[n] as string;
    swapped[n] = next;
    return swapped.join('');
  });
};
