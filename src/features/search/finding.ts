import type { Deps } from '../../http/deps.js';
import type { SearchParts } from './documents.js';
import { closestWord, familiesOf, family_words, matchSections, swappedWords } from './rules.js';
import type { SearchResults } from './schema.js';
import * as store from './store.js';

/**
 * A search in two passes: the text as it is, and if nothing is found, the text with its typing
 * errors corrected.
 */

type Needs = Pick<Deps, 'reads'> & SearchParts;
type Found = Omit<SearchResults, 'q' | 'corrected'>;

const find = async (
  { reads, guide_sections }: Needs,
  text: string,
  limit: number,
): Promise<Found> => {
  const named = familiesOf(text);
  const [questions, agents, families] = await Promise.all([
    store.findQuestions(reads, text, limit + 1),
    store.findAgents(reads, text, limit + 1),
    named.length === 0 ? [] : store.findFamilies(reads, named),
  ]);
  const documents = matchSections(guide_sections(), text);
  return {
    questions: questions
      .slice(0, limit)
      .map(({ closes_at, ...row }) => ({ ...row, closes_at: closes_at.toISOString() })),
    agents: agents.slice(0, limit),
    families,
    documents: documents
      .slice(0, limit)
      .map(({ title, heading, path }) => ({ title, heading, path })),
    more: {
      questions: questions.length > limit,
      agents: agents.length > limit,
      documents: documents.length > limit,
    },
  };
};

const isEmpty = ({ questions, agents, families, documents }: Found): boolean =>
  [questions, agents, families, documents].every((group) => group.length === 0);

/** Words of headings and families, to which a word can also be corrected. */
const ownWords = ({ guide_sections }: Needs): readonly string[] => [
  ...new Set([
    ...family_words,
    ...guide_sections().flatMap(({ heading_words }) => heading_words.trim().split(' ')),
  ]),
];

/** Maximum number of words that are corrected, and of letters in each. */
const max_corrected = 5;
const max_letters = 40;

/** Returns the text with its typing errors corrected, or null if nothing can be corrected. */
const correct = async (deps: Needs, text: string): Promise<string | null> => {
  // Quotes and exclusions are meant as they are.
  if (/["“”«»„]|(^|\s)-/.test(text)) return null;
  const spellings = await store.readSpellings(deps.reads, text);
  const unknown = spellings.filter(({ is_known }) => !is_known);
  // More would take long, and such a text has no meaning.
  if (unknown.length === 0 || unknown.length > max_corrected) return null;
  if (unknown.some(({ word }) => word.length > max_letters)) return null;
  const own = ownWords(deps);
  const swapped = unknown.flatMap(({ word }) => swappedWords(word));
  const known = await store.findKnown(deps.reads, swapped);
  const words = spellings.map(({ word, is_known, similar }, n) => {
    if (is_known || own.includes(word)) return word;
    const is_last = n === spellings.length - 1;
    return closestWord(word, [...known, ...similar, ...own], is_last) ?? word;
  });
  const corrected = words.join(' ');
  return corrected === spellings.map(({ word }) => word).join(' ') ? null : corrected;
};

/** Returns at most `limit` results in each group. */
export const search = async (deps: Needs, q: string, limit: number): Promise<SearchResults> => {
  const found = await find(deps, q, limit);
  const corrected = isEmpty(found) ? await correct(deps, q) : null;
  const instead = corrected === null ? found : await find(deps, corrected, limit);
  return { q, corrected: isEmpty(instead) ? null : corrected, ...instead };
};
