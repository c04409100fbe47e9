import { findHeadings, section_names } from './headings.js';

/** The four sections of a reasoning, for who shows parts of it. */

export interface Sections {
  readonly evidence: string;
  readonly analysis: string;
  readonly counter_evidence: string;
  readonly bottom_line: string;
}

const readable = /[\p{L}\p{N}]/u;

/**
 * Each section up to the next of the four, as gate 2 finds them; empty where it is not there,
 * which no stored reasoning lacks.
 */
export const readSections = (text: string): Sections => {
  const headings = findHeadings(text);
  const found = ['', '', '', ''];
  let cursor = -1;
  for (const [section] of section_names.entries()) {
    for (let i = cursor + 1; i < headings.length; i += 1) {
      if (headings[i]!.section !== section) continue;
      const next = headings.find((one, n) => n > i && one.section < section_names.length);
      const body = text.slice(headings[i]!.end, next?.start).trim();
      if (!readable.test(body)) continue;
      found[section] = body;
      cursor = i;
      break;
    }
  }
  const [evidence = '', analysis = '', counter_evidence = '', bottom_line = ''] = found;
  return { evidence, analysis, counter_evidence, bottom_line };
};
