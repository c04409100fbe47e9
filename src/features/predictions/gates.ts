import type { Config } from '../../config.js';
import { sha256 } from '../../kit/ids.js';
import {
  countCharacters,
  findLinks,
  normaliseText,
  type Prose,
  readProse,
  toNormalForm,
  type WordHashes,
} from '../../kit/text.js';
import type { QuestionRow } from '../questions/index.js';
import { checkCitations, citation_limits, describePages, readCitation } from './citations.js';
import type { PredictionRow } from './columns.js';
import type { ForecastColumns } from './distribution.js';
import { type Failure, inOrder } from './faults.js';
import { readForecastInput, readProbability } from './forecast-input.js';
import { explainSections, findHeadings, headingRanges, restoreBreaks } from './reasoning.js';
import { type PredictBody, protocol_limits } from './schema.js';

/**
 * The quality gates. They collect every failure, in the order of `prediction_faults`. This file has
 * the gates that need only the body. The gates that compare a prediction with stored ones (sources,
 * similar texts, cap of a model family) are in `originality.ts`, but their messages are here.
 */

/** The parts of a prediction that are compared with others. Storing it does not change them. */
export interface ComparedText {
  readonly words: WordHashes;
  /** The cited pages, as `pagesOf` returns them. */
  readonly sources: readonly string[];
  readonly model_family: string;
}

/** Pages are compared by digest. A cached URL would keep the text around it in memory. */
const digestOf = (key: string): string => sha256(key, 'base64');

/** Returns the digests by which pages are compared. */
export const pagesOf = (citations: readonly string[]): readonly string[] =>
  citations.map((url) => digestOf(readCitation(url).key));

export const comparedOf = ({
  reasoning,
  citations,
  model_family,
}: Pick<PredictionRow, 'reasoning' | 'citations' | 'model_family'>): ComparedText => ({
  words: readWords(reasoning),
  sources: pagesOf(citations),
  model_family,
});

export type Finding =
  | { readonly kind: 'reused'; readonly by: 'others' | 'self' }
  | { readonly kind: 'family'; readonly cap: number }
  /** `seq`: the number of the most similar prediction on the question. */
  | { readonly kind: 'similar'; readonly similarity: number; readonly seq: number };

export const reasoning_limits = {
  min_characters: 200,
  max_characters: 10_000,
  min_words: 30,
  word_letters: 4,
} as const;

export interface ReasoningCheck {
  /** The text that was checked and is stored: in NFC, trimmed, with its line breaks restored. */
  readonly text: string;
  /** Usable sources as cited, each page once: at most 50, each of at most 2,048 characters. */
  readonly citations: readonly string[];
  /** Digests of the same sources, for the comparison with other predictions. */
  readonly citation_keys: readonly string[];
  /** The words that count and are compared with other predictions; see `readWords`. */
  readonly words: WordHashes;
  /** The failures, in the order of the gates. Empty if the reasoning passes. */
  readonly failures: readonly Failure[];
}

const findParts = (text: string) => ({ links: findLinks(text), headings: findHeadings(text) });

/** Takes time linear in the length of the text: about 20 µs for 1,000 characters. */
export const checkReasoning = (
  raw: string,
  evidence_urls: readonly string[] = [],
): ReasoningCheck => {
  const text = restoreBreaks(normaliseText(raw)).trim();
  const parts = findParts(text);
  const { links, headings } = parts;
  const { distinct: words, objection } = readCompatible(text, parts);
  const sources = checkCitations(text, links, evidence_urls);
  const failures: Failure[] = [];
  checkLength(text, failures);
  checkWords(words.length, failures);
  const message = explainSections(text, headings);
  if (message !== null) {
    failures.push({ path: 'body.reasoning', message, code: 'REASONING_MISSING_SECTIONS' });
  }
  failures.push(...sources.failures);
  if (objection !== null) {
    const message = `The reasoning was not accepted. ${objection.detail}`;
    failures.push({ path: 'body.reasoning', message, code: 'CONTENT_REJECTED' });
  }
  const citation_keys = sources.keys.map(digestOf);
  return { text, citations: sources.citations, citation_keys, words, failures };
};

/** Reads the words of a text in NFKC, which unifies variants of a letter. */
const readCompatible = (text: string, parts: ReturnType<typeof findParts>): Prose => {
  const compatible = toNormalForm(text, 'NFKC');
  const { links, headings } = compatible === text ? parts : findParts(compatible);
  const uncounted = headingRanges(headings);
  return readProse(compatible, { links, uncounted, min_letters: reasoning_limits.word_letters });
};

/**
 * Returns the words that count and are compared, from the text in NFKC without headings and URLs. A
 * word has four letters or more, or two in scripts without spaces and in Korean. Case does not
 * matter.
 */
export const readWords = (reasoning: string): WordHashes =>
  readCompatible(reasoning, findParts(reasoning)).distinct;

/** Counts code points only if needed: each has one or two code units. */
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
    `Use at least ${min_words} different words of ${word_letters} letters or more, not ` +
    `${distinct_words}. In Korean and in scripts without spaces, two letters are enough. ` +
    'Headings and URLs do not count.';
  failures.push({ path: 'body.reasoning', message, code: 'REASONING_TOO_SHORT' });
};

export interface Examined {
  /** Null if the body has no valid forecast. */
  readonly stated: ForecastColumns | null;
  readonly checked: ReasoningCheck;
  readonly prior: number | null;
  readonly text: ComparedText;
  /** Failures of the gates that need only the body. */
  readonly failures: readonly Failure[];
}

export interface ExamineRequest {
  readonly body: PredictBody;
  readonly question: QuestionRow;
  readonly model_family: string;
}

export const examine = (
  config: Pick<Config, 'REQUIRE_RESOLUTION_PROTOCOL'>,
  { body, question, model_family }: ExamineRequest,
): Examined => {
  const failures: Failure[] = [];
  const stated = readForecastInput(body, question);
  if ('failures' in stated) failures.push(...stated.failures);
  const prior = readPrior(body);
  if (prior !== null && typeof prior === 'object') failures.push(prior);
  const unfit = checkProtocol(body.resolution_protocol, config.REQUIRE_RESOLUTION_PROTOCOL);
  if (unfit !== null) failures.push(unfit);
  const checked = checkReasoning(body.reasoning, body.evidence_urls);
  failures.push(...checked.failures);
  return {
    stated: 'failures' in stated ? null : stated,
    checked,
    prior: typeof prior === 'object' ? null : prior,
    text: { words: checked.words, sources: checked.citation_keys, model_family },
    failures,
  };
};

/** Removes cited pages that cannot be read, and adds a failure if too few are left. */
export const withoutPages = (
  examined: Examined,
  problems: ReadonlyMap<string, string>,
): Examined => {
  if (problems.size === 0) return examined;
  const { checked, text } = examined;
  const kept = checked.citations.map((url) => !problems.has(url));
  const citations = checked.citations.filter((_, index) => kept[index]);
  const citation_keys = checked.citation_keys.filter((_, index) => kept[index]);
  let failures = examined.failures;
  if (citations.length < citation_limits.needed) {
    const message = `Cite two different pages that others can read. Problems: ${describePages(problems)}.`;
    const path = 'body.reasoning';
    failures = inOrder([...failures, { path, message, code: 'CITATIONS_INVALID' }]);
  }
  return {
    ...examined,
    checked: { ...checked, citations, citation_keys },
    text: { ...text, sources: citation_keys },
    failures,
  };
};

/** True for null and for an empty text, list or object. */
const saysNothing = (protocol: unknown): boolean =>
  typeof protocol === 'string'
    ? protocol.trim() === ''
    : typeof protocol === 'object' && Object.keys(protocol ?? {}).length === 0;

const checkProtocol = (protocol: unknown = null, is_required: boolean): Failure | null => {
  const path = 'body.resolution_protocol';
  if (is_required && saysNothing(protocol)) {
    const message = 'Send resolution_protocol: how you would determine the outcome.';
    return { path, message, code: 'RESOLUTION_PROTOCOL_REQUIRED' };
  }
  const { bytes: most, characters } = protocol_limits;
  const bytes = Buffer.byteLength(JSON.stringify(protocol));
  if (bytes <= most) return null;
  if (typeof protocol === 'string' && countCharacters(protocol) <= characters) return null;
  const message = `Send a resolution_protocol of at most ${most} bytes as JSON, not ${bytes}.`;
  return { path, message, code: 'INVALID_REQUEST' };
};

const readPrior = ({ prior_probability: value, scale }: PredictBody): number | Failure | null =>
  value === null || value === undefined
    ? null
    : readProbability(value, { field: 'prior_probability', scale });

const failureOf = (finding: Finding): Failure => {
  const path = 'body.reasoning';
  if (finding.kind === 'similar') {
    const percent = Math.floor(finding.similarity * 100);
    const message =
      `The reasoning and an earlier prediction on this question have ${percent} % of their words ` +
      'in common. Write your own reasoning, with less than 60 %.';
    return { path, message, code: 'REASONING_TOO_SIMILAR' };
  }
  if (finding.kind === 'family') {
    const message = `${finding.cap} agents of this model family have predicted here. That is the limit.`;
    return { path: 'header.x-api-key', message, code: 'MODEL_LIMIT_REACHED' };
  }
  const message =
    finding.by === 'others'
      ? 'Others have cited all of these pages on this question. Add one that is new here.'
      : 'You have cited all of these pages before. Add one that you have not cited yet.';
  return { path, message, code: 'CITATIONS_REUSED' };
};

/** Returns all failures in the order of the gates. */
export const allFailures = (
  failures: readonly Failure[],
  findings: readonly Finding[],
): readonly Failure[] =>
  findings.length === 0 ? failures : inOrder([...failures, ...findings.map(failureOf)]);
