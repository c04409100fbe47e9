import { countCharacters } from '../../kit/text.js';
import {
  findHeadings,
  findMention,
  type Heading,
  other_heading,
  section_names,
} from './headings.js';

/** The four sections of a reasoning: for gate 2, and for who shows parts of them. */

const letter_or_digit = /[\p{L}\p{N}]/u;

/** Whether anything that can be read stands between `from` and `to`. */
const hasText = (text: string, from: number, to: number): boolean =>
  letter_or_digit.test(text.slice(from, to));

/** Text of the section that `headings[index]` opens: up to the next of the four, without others. */
const sectionHasText = (text: string, headings: readonly Heading[], index: number): boolean => {
  let from = headings[index]!.end;
  for (let next = index + 1; next < headings.length; next += 1) {
    const { section, start, end } = headings[next]!;
    if (hasText(text, from, start)) return true;
    if (section !== other_heading) return false;
    from = end;
  }
  return hasText(text, from, text.length);
};

/** Indices of headings, −1 for none. */
interface Place {
  /** The first in its place in the order that has text. */
  readonly found: number;
  /** Else the first in its place. */
  readonly empty: number;
}

/**
 * The four, each behind the one before it. A heading may occur again; what counts is that they can
 * be found in order, each with text.
 */
const findPlaces = (text: string, headings: readonly Heading[]): Place[] => {
  let cursor = -1;
  return section_names.map((_, section) => {
    let found = -1;
    let empty = -1;
    for (let i = cursor + 1; i < headings.length && found === -1; i += 1) {
      if (headings[i]!.section !== section) continue;
      if (sectionHasText(text, headings, i)) found = i;
      else if (empty === -1) empty = i;
    }
    cursor = Math.max(cursor, found, empty);
    return { found, empty };
  });
};

/** From 1, as people count. */
const characterAt = (text: string, at: number): string =>
  `at character ${countCharacters(text.slice(0, at)) + 1}`;

const problemOf = (text: string, headings: readonly Heading[], section: number): string => {
  const name = section_names[section]!;
  if (headings.some((heading) => heading.section === section)) return `${name} is out of order`;
  const at = findMention(text, section);
  if (at === -1) return `${name} is missing`;
  const words = text.slice(at, at + 40).split('\n', 1)[0]!;
  return `${name} stands ${characterAt(text, at)} (“${words}”), but not as a heading`;
};

/** Headings that a refusal names. */
const most_named = 8;

const sayFound = (text: string, headings: readonly Heading[]): string => {
  const named = headings.filter(({ section }) => section !== other_heading);
  if (named.length === 0) return '';
  const places = named
    .slice(0, most_named)
    .map(({ section, start }) => `${section_names[section]} ${characterAt(text, start)}`);
  return ` Found: ${places.join(', ')}${named.length > most_named ? ', …' : ''}.`;
};

/** Gate 2: what is wrong with the four sections, and what was found; null when all is well. */
export const explainSections = (text: string, headings: readonly Heading[]): string | null => {
  const problems: string[] = [];
  for (const [section, { found, empty }] of findPlaces(text, headings).entries()) {
    if (found !== -1) continue;
    problems.push(
      empty === -1
        ? problemOf(text, headings, section)
        : `${section_names[section]} ${characterAt(text, headings[empty]!.start)} has no text`,
    );
  }
  if (problems.length === 0) return null;
  return (
    `Write the sections ${section_names.join(', ')}, in this order, each with text and a heading ` +
    `such as “EVIDENCE:”. ${problems.join('; ')}.${sayFound(text, headings)}`
  );
};

export interface Sections {
  readonly evidence: string;
  readonly analysis: string;
  readonly counter_evidence: string;
  readonly bottom_line: string;
}

/**
 * Each section up to the next of the four, as gate 2 finds them; empty where it is not there,
 * which no stored reasoning lacks.
 */
export const readSections = (text: string): Sections => {
  const headings = findHeadings(text);
  const [evidence = '', analysis = '', counter_evidence = '', bottom_line = ''] = findPlaces(
    text,
    headings,
  ).map(({ found }) => {
    if (found === -1) return '';
    const next = headings.find((one, n) => n > found && one.section !== other_heading);
    return text.slice(headings[found]!.end, next?.start).trim();
  });
  return { evidence, analysis, counter_evidence, bottom_line };
};
