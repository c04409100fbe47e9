import { codeAt } from '../../kit/code-at.js';
import { is_apart, narrow_classes } from '../../kit/letters.js';

/**
 * The headings of a reasoning. A heading stands at the start of a line, in any case, bare or with
 * Markdown around it (`## Evidence`, `**EVIDENCE:**`, `2. Analysis`, `> Bottom line`), and is
 * followed by a colon or the end of the line. Text after the colon belongs to its section. A dash
 * does for the colon after a name in capitals (`EVIDENCE — …`). A sentence that begins with such a
 * word is no heading.
 */

export const section_names = ['EVIDENCE', 'ANALYSIS', 'COUNTER-EVIDENCE', 'BOTTOM LINE'] as const;
/** Any other Markdown heading (`# …`): its words do not count, and it ends no section. */
const other_heading = section_names.length;

export interface Heading {
  /** Index in `section_names`, or one past them. */
  readonly section: number;
  readonly start: number;
  /** Where its own text begins, or the end of the line. */
  readonly end: number;
}

const dash = '[-\\u00ad\\u2010-\\u2015\\u2212]';
const named = new RegExp(
  `(?:>[ \\t]{0,4})?(#{1,6}[ \\t]{0,4})?(?:\\d{1,2}[.)][ \\t]{1,4})?[*_]{0,3}[ \\t]?` +
    `(?:(EVIDENCE)|(ANALYSIS)|(COUNTER[ \\t]?${dash}?[ \\t]?EVIDENCE)|(BOTTOM[ \\t]?${dash}?[ \\t]?LINE))` +
    `(?![A-Za-z0-9])`,
  'iy',
);
const markdown = /#{1,6}[ \t]/y;

/** Letters and signs a heading's line can begin with; nearly every line of prose fails here. */
const can_begin = new Uint8Array(128);
for (const char of '>#*_0123456789EACBeacb') can_begin[char.charCodeAt(0)] = 1;

/** Every heading, in the order of the text. Linear: each line is looked at once, at its start. */
export const findHeadings = (text: string): Heading[] => {
  const headings: Heading[] = [];
  const { length } = text;
  let start = 0;
  while (start < length) {
    const newline = text.indexOf('\n', start);
    const line_end = newline === -1 ? length : newline;
    let at = start;
    while (at < line_end && (codeAt(text, at) === 0x20 || codeAt(text, at) === 9)) at += 1;
    const first = codeAt(text, at);
    if (first < 128 && can_begin[first] === 1) {
      const heading = headingAt(text, at, line_end);
      if (heading !== null) headings.push(heading);
    }
    start = line_end + 1;
  }
  return headings;
};

const headingAt = (text: string, start: number, line_end: number): Heading | null => {
  named.lastIndex = start;
  const match = named.exec(text);
  if (match !== null) {
    const section = [2, 3, 4, 5].findIndex((group) => match[group] !== undefined);
    const end = textBegin(text, named.lastIndex, { line_end, name: match[section + 2]! });
    if (end !== -1) return { section, start, end };
  }
  if (codeAt(text, start) !== 0x23) return null;
  markdown.lastIndex = start;
  return markdown.test(text) ? { section: other_heading, start, end: line_end } : null;
};

/** Behind the name: closing Markdown and blanks, then a colon or the end of the line; else −1. */
const textBegin = (
  text: string,
  from: number,
  { line_end, name }: { readonly line_end: number; readonly name: string },
): number => {
  for (let at = from; at < line_end; at += 1) {
    const code = codeAt(text, at);
    if (code === 0x3a || code === 0xff1a) return at + 1;
    const is_dash = code === 0x2d || (code >= 0x2012 && code <= 0x2015);
    if (is_dash) return name === name.toUpperCase() && at > from ? at + 1 : -1;
    // Blank, tab, carriage return, *, _ and #.
    const closes = code === 0x20 || code === 9 || code === 13 || code === 0x2a || code === 0x5f;
    if (!closes && code !== 0x23) return -1;
  }
  return line_end;
};

/** Headings as flat ranges, whose words do not count. */
export const headingRanges = (headings: readonly Heading[]): number[] => {
  const ranges: number[] = [];
  for (const { start, end } of headings) ranges.push(start, end);
  return ranges;
};

const letter_or_digit = /[\p{L}\p{N}]/u;

/** Whether anything that can be read stands between `from` and `to`. */
const hasText = (text: string, from: number, to: number): boolean => {
  for (let at = from; at < to; at += 1) {
    const code = codeAt(text, at);
    if (code >= 256) return letter_or_digit.test(text.slice(at, to));
    if (narrow_classes[code]! > is_apart || (code >= 0x30 && code <= 0x39)) return true;
  }
  return false;
};

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

/**
 * Gate 2: what is wrong with the four sections, one phrase each; empty when all is well. A heading
 * may occur again; what counts is that the four can be found in order, each with text.
 */
export const sectionProblems = (text: string, headings: readonly Heading[]): string[] => {
  const problems: string[] = [];
  let cursor = -1;
  for (const [section, name] of section_names.entries()) {
    let empty = -1;
    let found = -1;
    for (let i = cursor + 1; i < headings.length && found === -1; i += 1) {
      if (headings[i]!.section !== section) continue;
      if (sectionHasText(text, headings, i)) found = i;
      else if (empty === -1) empty = i;
    }
    if (found === -1 && empty !== -1) problems.push(`${name} has no text under it`);
    else if (found === -1) {
      const elsewhere = headings.some((heading) => heading.section === section);
      problems.push(elsewhere ? `${name} is out of order` : `${name} is missing`);
    }
    cursor = Math.max(cursor, found, empty);
  }
  return problems;
};
