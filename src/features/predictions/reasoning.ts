import { hashText } from '../../kit/hash.js';
import { findLinks } from '../../kit/links.js';
import { countCharacters, normaliseText } from '../../kit/text.js';
import { type Prose, readProse } from '../../kit/words.js';
import { checkCitations } from './citations.js';
import type { Failure } from './faults.js';
import { findHeadings, type Heading, headingRanges, restoreBreaks } from './headings.js';
import { explainSections } from './sections.js';

/** Gates 1, 2, 3, 4 and 7 on a reasoning, every failure collected, in the order of the gates. */

export const reasoning_limits = {
  min_characters: 200,
  max_characters: 10_000,
  min_words: 30,
  word_letters: 4,
} as const;

export interface ReasoningCheck {
  /** In NFC, trimmed, with the line breaks it was meant to have: what is stored and was checked. */
  readonly text: string;
  /** Usable sources as cited, each page once, at most 50 of at most 2,048 characters. */
  readonly citations: readonly string[];
  /** The same sources in the form in which pages are compared. */
  readonly citation_keys: readonly string[];
  /** Different words of four letters or more, without headings and URLs. */
  readonly distinct_words: number;
  /** The words that are compared with those of other predictions; see `readWords`. */
  readonly words: readonly number[];
  /** Empty when the reasoning passes; the first failing gate comes first. */
  readonly failures: readonly Failure[];
}

interface Parts {
  readonly links: readonly number[];
  readonly headings: readonly Heading[];
}

const findParts = (text: string): Parts => ({
  links: findLinks(text),
  headings: findHeadings(text),
});

/** Linear in the length of the text; some 40 µs for 1,000 characters. */
export const checkReasoning = (
  raw: string,
  evidence_urls: readonly string[] = [],
): ReasoningCheck => {
  const text = restoreBreaks(normaliseText(raw)).trim();
  const parts = findParts(text);
  const { links, headings } = parts;
  const { distinct, objection } = readCompatible(text, parts);
  const words = Array.from(distinct, hashText);
  const distinct_words = words.length;
  const sources = checkCitations(text, links, evidence_urls);
  const failures: Failure[] = [];
  checkLength(text, failures);
  checkWords(distinct_words, failures);
  const message = explainSections(text, headings);
  if (message !== null) {
    failures.push({ path: 'body.reasoning', message, code: 'REASONING_MISSING_SECTIONS' });
  }
  failures.push(...sources.failures);
  if (objection !== null) {
    const message = `The reasoning was not accepted. ${objection.detail}`;
    failures.push({ path: 'body.reasoning', message, code: 'CONTENT_REJECTED' });
  }
  const { citations, keys: citation_keys } = sources;
  return { text, citations, citation_keys, distinct_words, words, failures };
};

/** The words of a text in NFKC, where letters of different looks are one. */
const readCompatible = (text: string, parts: Parts): Prose => {
  const compatible = text.normalize('NFKC');
  const { links, headings } = compatible === text ? parts : findParts(compatible);
  const uncounted = headingRanges(headings);
  return readProse(compatible, { links, uncounted, min_letters: reasoning_limits.word_letters });
};

/**
 * Gate 1 counts words, and gate 6 compares sets of them: of the text in NFKC, what each script has
 * for words, of four or more letters, or of two in scripts without blanks and in Korean, outside of
 * headings and URLs. Case does not matter. (A normal form can be eighteen times as long as its
 * text; what is beyond 80,000 UTF-16 units is not read.) The numbers stand for the words within
 * this process: two words share one with a chance of 2^-53.
 */
export const readWords = (reasoning: string): readonly number[] =>
  Array.from(readCompatible(reasoning, findParts(reasoning)).distinct, hashText);

/** Code points are counted only where they can decide; a pair of code units is at most one. */
const checkLength = (text: string, failures: Failure[]): void => {
  const { min_characters, max_characters } = reasoning_limits;
  if (text.length >= 2 * min_characters && text.length <= max_characters) return;
  const length = countCharacters(text);
  if (length < min_characters) {
    const message = `Write at least ${min_characters} characters of reasoning, not ${length}.`;
    failures.push({ path: 'body.reasoning', message, code: 'REASONING_TOO_SHORT' });
  }
  if (length > max_characters) {
    const message = `Write at most ${max_characters} characters of reasoning, not ${length}.`;
    failures.push({ path: 'body.reasoning', message, code: 'INVALID_REQUEST' });
  }
};

const checkWords = (distinct_words: number, failures: Failure[]): void => {
  const { min_words, word_letters } = reasoning_limits;
  if (distinct_words >= min_words) return;
  const message =
    `Use at least ${min_words} different words of ${word_letters} letters or more (two in ` +
    'scripts without blanks between words and in Korean; headings and URLs do not count), not ' +
    `${distinct_words}.`;
  failures.push({ path: 'body.reasoning', message, code: 'REASONING_TOO_SHORT' });
};
