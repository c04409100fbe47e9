import { type Fault, refuse } from '../../kit/fault.js';
import { findName } from '../../kit/names.js';
import type { Value } from '../questions/schema.js';
import { resolution_faults } from '../resolution/schema.js';

/** Reads `resolved_to`, which other services write in many ways. */

type Outcome =
  | { readonly outcome: boolean }
  | { readonly correct_options: string[] }
  | { readonly outcome_value: Value }
  | { readonly void: true };

interface Asked {
  readonly question_type: string;
  readonly options: readonly string[];
}

const refuseOutcome = (message: string): Fault =>
  refuse(resolution_faults.INVALID_OUTCOME, {
    message,
    fields: [{ path: 'body.resolved_to', message }],
  });

export const refuseTwo = (names: readonly string[]): Fault =>
  refuseOutcome(`Send only one of ${names.join(' and ')}.`);

const readJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Returns a list's items as strings; null if it is not a list or contains objects or nulls. */
const readTexts = (value: unknown): string[] | null =>
  Array.isArray(value) && value.every((one) => one !== null && typeof one !== 'object')
    ? value.map(String)
    : null;

const readOptions = (text: string, options: readonly string[]): Outcome => {
  const json = readJson(text);
  const texts = readTexts(json);
  if (texts !== null) return { correct_options: texts };
  if (typeof json === 'string') return { correct_options: [json] };
  const parts = text.split('|').filter((part) => part.trim() !== '');
  if (parts.length > 1) return { correct_options: parts };
  const is_word = /^void(?:ed)?$/i.test(text) && findName(text, options) === -1;
  return is_word ? { void: true } : { correct_options: [text] };
};

const words: Readonly<Record<string, Outcome>> = {
  '1': { outcome: true },
  '1.0': { outcome: true },
  true: { outcome: true },
  yes: { outcome: true },
  '0': { outcome: false },
  '0.0': { outcome: false },
  false: { outcome: false },
  no: { outcome: false },
  void: { void: true },
  voided: { void: true },
};

/**
 * Reads the value of `resolved_to`. An exact option of the question has priority over every other
 * meaning. Next come JSON, then options with `|` between them, then words such as `yes` and `void`.
 */
export const readResolvedTo = (to: unknown, { question_type, options }: Asked): Outcome | Fault => {
  const texts = question_type === 'multi' ? readTexts(to) : null;
  if (texts !== null) return { correct_options: texts };
  if (typeof to === 'object')
    return refuseOutcome('resolved_to must be a string, a number or a list of strings.');
  const text = String(to).trim();
  if (question_type === 'multi') {
    const index = findName(text, options);
    return index === -1 ? readOptions(text, options) : { correct_options: [options[index]!] };
  }
  const json = readJson(text);
  const word = (typeof json === 'string' ? json : text).toLowerCase();
  const known = Object.hasOwn(words, word) ? words[word]! : undefined;
  if (question_type === 'binary') {
    return (
      known ??
      refuseOutcome(
        `A yes/no question is resolved to 1, 0, yes, no or void, not to ${text.slice(0, 60)}.`,
      )
    );
  }
  if (known !== undefined && 'void' in known) return known;
  // A date without a time means midnight UTC, as for the other times of an import.
  if (question_type === 'date' && /^\d{4}-\d{2}-\d{2}$/.test(text)) {
    return { outcome_value: `${text}T00:00:00Z` };
  }
  return {
    outcome_value: typeof to === 'number' || typeof json !== 'number' ? (to as Value) : json,
  };
};
