import { countCharacters } from '../../kit/text.js';

/**
 * The four sections of the reasoning, for the gate that checks them and for pages that show them.
 * One of the four names is a heading if it
 * - begins a line, in upper or lower case, also with Markdown (`## Evidence`, `2. Analysis`), and
 *   is followed by a colon, the end of the line or, if in capitals, a dash;
 * - is bold, anywhere (`**Evidence** text`; in lower case with a colon);
 * - is in capitals, anywhere, with a colon after it (`… ANALYSIS: …`), or with `##` or a number
 *   before it (`… 2. ANALYSIS …`).
 * Text after it belongs to its section. A sentence that mentions the word is not a heading.
 */

export const section_names = ['EVIDENCE', 'ANALYSIS', 'COUNTER-EVIDENCE', 'BOTTOM LINE'] as const;
/** Any other Markdown heading (`# …`). Its words do not count, and it does not end a section. */
const other_heading = section_names.length;

export interface Heading {
  /** Index in `section_names`, or `other_heading`. */
  readonly section: number;
  readonly start: number;
  /** Start of the text after the heading. For `other_heading`, the end of the heading. */
  readonly end: number;
}

const blank = '[ \\t\\u00a0]';
const dash = '[-\\u00ad\\u2010-\\u2015\\u2212]';
const gap = `${blank}{0,2}${dash}?${blank}{0,2}`;
const names = new RegExp(
  `(?:EVIDENCE|ANALYSIS|COUNTER${gap}EVIDENCE|BOTTOM${gap}LINE)(?![A-Za-z0-9])`,
  'gi',
);
const initials = section_names.map((name) => name.charAt(0)).join('');

/** Matches text before a name that makes the name part of another word or of a URL. */
const part_of_other = /[A-Za-z0-9\u00c0-\u024f/=&?%@\\\u00ad\u2010-\u2013\u2212-]$|[A-Za-z0-9]_+$/;
/** Matches `COUNTER-` before `EVIDENCE`, in all its spellings. */
const counter = new RegExp(`counter(?:${blank}|[*_]|${dash}){0,6}$|counter${dash}\\s{0,3}$`, 'i');
/** Matches the part of a heading before its name: `>`, `##`, a number, `**`. */
const decoration =
  /(?:>[ \t]{0,4})?(?:#{1,6}[ \t]{0,4})?(?:[*_]{0,3}(?<![\d.,])\d{1,2}[.)][ \t]{1,4})?[*_]{0,3}[ \t]?$/;
const decorates = new Set([...'>#*_.) \t0123456789']);
/** Maximum number of such characters that are read before a name. */
const headings_looked_at = 40;

/** These match right after a name. A match ends where the text of the section starts. */
const colon_or_end = /[ \t\r*_#]*(?:[:：][*_]{0,3}|(?=\n|$))/y;
const blank_and_dash = /[ \t\r*_#]+[-\u2012-\u2015]/y;
const colon = /[ \t*_]*[:：][*_]{0,3}/y;
const bold_end = /[ \t]?[:：]?[ \t]?(?:\*\*|__)[*_]?[ \t]?[:：]?/y;
const apart = /[ \t*_#]*(?=[\s*#]|$)/y;

/** A section name in the text, with its surroundings. It may be a heading. */
interface Named {
  readonly text: string;
  readonly name: string;
  readonly section: number;
  /** Position of the name. */
  readonly at: number;
  readonly lead: string;
  readonly begins_line: boolean;
  readonly is_capital: boolean;
}

const isPart = (text: string, at: number, section: number): boolean =>
  part_of_other.test(text.slice(Math.max(0, at - 4), at)) ||
  (section === 0 && counter.test(text.slice(Math.max(0, at - 20), at)));

const readNamed = (text: string, match: RegExpExecArray): Named | null => {
  const { 0: name, index: at } = match;
  const section = initials.indexOf(name.charAt(0).toUpperCase());
  if (isPart(text, at, section)) return null;
  let from = at;
  while (from > 0 && at - from < headings_looked_at && decorates.has(text[from - 1]!)) from -= 1;
  const before = text.slice(from, at);
  const lead = before === '' ? '' : decoration.exec(before)![0];
  const is_first = from === 0 || text[from - 1] === '\n';
  const begins_line = is_first && before.slice(0, before.length - lead.length).trim() === '';
  return { text, name, section, at, lead, begins_line, is_capital: name === name.toUpperCase() };
};

/** Returns the start of the text after a heading, or −1 if the name is not a heading. */
const textBegin = ({ text, name, at, lead, begins_line, is_capital }: Named): number => {
  const behind = at + name.length;
  const endOf = (pattern: RegExp): number => {
    pattern.lastIndex = behind;
    return pattern.test(text) ? pattern.lastIndex : -1;
  };
  if (lead !== '' && /(?:\*\*|__)(?:\d{1,2}[.)][ \t]{1,4})?[ \t]?$/.test(lead)) {
    const end = endOf(bold_end);
    if (end !== -1 && (/^[A-Z]/.test(name) || /[:：]/.test(text.slice(behind, end)))) return end;
  }
  let end = begins_line ? endOf(colon_or_end) : -1;
  if (end !== -1 || !is_capital) return end;
  end = begins_line ? endOf(blank_and_dash) : -1;
  if (end === -1) end = endOf(colon);
  return end === -1 && /[#\d]/.test(lead) ? endOf(apart) : end;
};

const findNamed = (text: string): Named[] => {
  const found: Named[] = [];
  names.lastIndex = 0;
  for (let match = names.exec(text); match !== null; match = names.exec(text)) {
    const named = readNamed(text, match);
    if (named !== null) found.push(named);
  }
  return found;
};

const markdown = /^[ \t]*(#{1,6})[ \t]/gm;

/** Finds other `#` headings. Each ends with its line, or before one of the four on that line. */
const findOthers = (text: string, headings: readonly Heading[]): Heading[] => {
  const others: Heading[] = [];
  for (const match of text.matchAll(markdown)) {
    const start = match.index + match[0].indexOf('#');
    const newline = text.indexOf('\n', start);
    const line_end = newline === -1 ? text.length : newline;
    const next = headings.find((heading) => heading.start >= start)?.start ?? line_end;
    if (next > start) {
      others.push({ section: other_heading, start, end: Math.min(line_end, next) });
    }
  }
  return others;
};

/** Returns every heading, in the order of the text. */
export const findHeadings = (text: string): Heading[] => {
  const headings: Heading[] = [];
  for (const named of findNamed(text)) {
    const end = textBegin(named);
    const start = named.at - named.lead.length;
    if (end !== -1) headings.push({ section: named.section, start, end });
  }
  if (!text.includes('#')) return headings;
  return [...headings, ...findOthers(text, headings)].sort((a, b) => a.start - b.start);
};

/** Returns the position of a name that looks like a heading but is not one, or −1. */
const findMention = (text: string, section: number): number => {
  const meant = findNamed(text).find(
    (named) => named.section === section && (named.begins_line || named.is_capital),
  );
  return meant?.at ?? -1;
};

/** Returns the headings as flat ranges. Their words do not count. */
export const headingRanges = (headings: readonly Heading[]): number[] => {
  const ranges: number[] = [];
  for (const { start, end } of headings) ranges.push(start, end);
  return ranges;
};

/** Matches `\n` written as two characters: twice, or once before Markdown or a section name. */
const plain_break =
  /(?<!\\)(?:\\r)?\\n(?:(?:\\r)?\\n|[ \t]*(?:[#>*_-]|\d{1,2}[.)]|EVIDENCE|ANALYSIS|COUNTER|BOTTOM))/i;

/**
 * A text that was escaped twice has `\n` instead of line breaks. This restores them. A text about
 * `C:\new` stays unchanged.
 */
export const restoreBreaks = (text: string): string =>
  text.includes('\\n') && plain_break.test(text)
    ? text.replaceAll(/(?<!\\)(?:\\r)?\\n/g, '\n')
    : text;

const alphanumeric = /[\p{L}\p{N}]/u;

/** Returns true if there is a letter or digit between `from` and `to`. */
const hasText = (text: string, from: number, to: number): boolean =>
  alphanumeric.test(text.slice(from, to));

/** True if this section has text before the next of the four. Other headings are not text. */
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

/** Indices of headings, or −1. */
interface Place {
  /** The first heading of this section that comes after the earlier sections and has text. */
  readonly found: number;
  /** The first heading of this section that comes after the earlier sections but has no text. */
  readonly empty: number;
}

/** Finds the four headings in order, each with text. A heading may also occur elsewhere. */
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

/** Counts characters from 1, as people do. */
const characterAt = (text: string, at: number): string =>
  `at character ${countCharacters(text.slice(0, at)) + 1}`;

const problemOf = (text: string, headings: readonly Heading[], section: number): string => {
  const name = section_names[section]!;
  if (headings.some((heading) => heading.section === section)) return `${name} is out of order`;
  const at = findMention(text, section);
  if (at === -1) return `${name} is missing`;
  const words = text.slice(at, at + 40).split('\n', 1)[0]!;
  return `${name} is ${characterAt(text, at)} (“${words}”), but not as a heading`;
};

/** Maximum number of headings that a refusal names. */
const max_named = 8;

const sayFound = (text: string, headings: readonly Heading[]): string => {
  const named = headings.filter(({ section }) => section !== other_heading);
  if (named.length === 0) return '';
  const places = named
    .slice(0, max_named)
    .map(({ section, start }) => `${section_names[section]} ${characterAt(text, start)}`);
  return ` Found: ${places.join(', ')}${named.length > max_named ? ', …' : ''}.`;
};

/** Explains the problems of the four sections and names the headings found. Null if all is well. */
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
 * Returns the text of each section, up to the next of the four headings, as the gate finds them. A
 * missing section is empty. Stored reasoning has all four.
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
