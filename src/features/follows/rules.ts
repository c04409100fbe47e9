import { type Fault, refuse } from '../../kit/fault.js';
import { normaliseText } from '../../kit/text.js';
import type { Consensus } from '../consensus/rules.js';
import { question_types } from '../questions/schema.js';
import { findUnknown, type Pillar, tagOf } from '../taxonomy/rules.js';
import { follow_faults } from './schema.js';

/** Rules for what can be followed: the normal form of a search, and the figures of a headline. */

/** The filters of a search. A question has to match all that are set. */
export interface Search {
  readonly q?: string;
  readonly category?: string;
  readonly subcategory?: string;
  readonly tag?: string;
  readonly question_type?: string;
}

const search_names = ['q', 'category', 'subcategory', 'tag', 'question_type'] as const;
const max_words = 200;
const max_tag = 50;
/** The table has the same limit. */
const max_text = 1_000;

const refuseSearch = (message: string): Fault =>
  refuse(follow_faults.INVALID_SEARCH, { message, fields: [{ path: 'params.id', message }] });

/**
 * Reads a search: a query string of `GET /api/questions` (`q=chips&category=technology`) or just
 * words. Filters with other names are refused, because the follower would get too much news.
 */
export const readSearch = (text: string, pillars: readonly Pillar[]): Search | Fault => {
  const given = text.includes('=') ? [...new URLSearchParams(text)] : [['q', text] as const];
  const search: Partial<Record<(typeof search_names)[number], string>> = {};
  for (const [name, value] of given) {
    const known = search_names.find((one) => one === name);
    if (known === undefined || search[known] !== undefined) {
      return refuseSearch(`Use only ${search_names.join(', ')}, each at most once.`);
    }
    const clean = normaliseText(value).trim().replace(/\s+/g, ' ');
    if (clean !== '') search[known] = known === 'tag' ? tagOf(clean) : clean;
  }
  if (Object.keys(search).length === 0) return refuseSearch('Give the search at least one word.');
  if ((search.q?.length ?? 0) > max_words) {
    return refuseSearch(`The words of a search can have at most ${max_words} characters.`);
  }
  if ((search.tag?.length ?? 0) > max_tag || searchText(search).length > max_text) {
    return refuseSearch('The search is too long. Use fewer or shorter words.');
  }
  const { question_type, category, subcategory, tag } = search;
  if (question_type !== undefined && question_types.every((one) => one !== question_type)) {
    return refuseSearch(`question_type must be one of ${question_types.join(', ')}.`);
  }
  const named = { category, subcategory, ...(tag === undefined ? {} : { tags: [tag] }) };
  return findUnknown(pillars, named, 'query') ?? search;
};

/** The normal form of a search. Equal searches have equal texts. */
export const searchText = (search: Search): string => {
  const pairs = search_names.flatMap((name) =>
    search[name] === undefined ? [] : [[name, search[name]]],
  );
  return new URLSearchParams(pairs).toString();
};

/** A search in words: `“chips” in Technology`. */
export const searchName = (subject: string, pillars: readonly Pillar[]): string => {
  const search: Search = Object.fromEntries(new URLSearchParams(subject));
  const { q, category, subcategory, tag, question_type } = search;
  const nameOf = (slug: string): string =>
    [...pillars, ...pillars.flatMap((one) => one.subcategories)].find((one) => one.slug === slug)
      ?.name ?? slug;
  const place = subcategory ?? category;
  return [
    q === undefined ? 'All questions' : `“${q}”`,
    place === undefined ? '' : `in ${nameOf(place)}`,
    tag ?? '',
    question_type === undefined ? '' : `(${question_type})`,
  ]
    .filter((part) => part !== '')
    .join(' ');
};

/**
 * Returns the figures of a headline in percent: one for a yes/no question, one for each option, or
 * the median of a number or a date as its place in the range. Null if there is no forecast.
 */
export const figuresOf = ({
  forecast,
  options,
  range,
}: Pick<Consensus, 'forecast' | 'options'> & {
  readonly range: { readonly min: number; readonly max: number } | null;
}): readonly number[] | null => {
  if (forecast === null) return null;
  if (options !== undefined) return options.map((one) => one.forecast ?? one.mean_probability ?? 0);
  if (range === null) return [Number(forecast)];
  const value = typeof forecast === 'number' ? forecast : Date.parse(forecast);
  return [(100 * (value - range.min)) / (range.max - range.min)];
};

const minute_ms = 60_000;
/** A visit ends when nothing was looked at for this long. */
export const visit_gap_ms = 30 * minute_ms;
