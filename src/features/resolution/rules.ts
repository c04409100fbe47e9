import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { findName } from '../../kit/names.js';
import { findObjection, hasControls, readText } from '../../kit/text.js';
import { prediction_faults } from '../predictions/faults.js';
import type { QuestionRow } from '../questions/index.js';
import { fitValue, nounOf, rangeOf, readValue } from '../questions/range.js';
import type { Value } from '../questions/schema.js';
import {
  dispute_faults,
  type FileBody,
  type ResolveBody,
  reason_limits,
  resolution_faults,
  type VoidBody,
} from './schema.js';

/** Rules for decisions and disputes, without I/O or a clock. */

/** A decision by an admin, or by upholding a dispute. */
export interface Decision {
  readonly kind: 'resolve' | 'void';
  /** Set if a yes/no question is resolved, else null. */
  readonly outcome: boolean | null;
  /** Set if a question with options is resolved, in the question's order. Else null. */
  readonly correct_options: readonly string[] | null;
  /** Set if a question about a number or a date is resolved, else null. */
  readonly outcome_value: number | null;
  /** When the outcome became public. Null if that is not stated. */
  readonly known_at: Date | null;
  readonly resolution_note: string | null;
  readonly evidence_urls: readonly string[];
}

const wrong = (path: string, message: string): Fault =>
  refuse(resolution_faults.INVALID_OUTCOME, { message, fields: [{ path, message }] });

const readOptions = (
  named: readonly string[],
  options: readonly string[],
): readonly string[] | Fault => {
  const path = 'body.correct_options';
  const right = new Set<number>();
  for (const text of named) {
    const index = findName(text, options);
    const shown = `“${text.slice(0, 60)}”`;
    if (index === -1) {
      return wrong(path, `${shown} is not an option. The options are ${options.join(', ')}.`);
    }
    if (right.has(index)) return wrong(path, `${shown} is named twice.`);
    right.add(index);
  }
  if (right.size === 0) return wrong(path, 'Name at least one correct option.');
  if (right.size === options.length) {
    return wrong(path, 'Not all options can be correct. Void the question instead.');
  }
  return options.filter((_, index) => right.has(index));
};

export const isWebAddress = (text: string): boolean =>
  !hasControls(text) && /^https?:/i.test(text) && URL.canParse(text);

const readReasons = (
  body: VoidBody,
): Pick<Decision, 'resolution_note' | 'evidence_urls'> | Fault => {
  const urls = (body.evidence_urls ?? []).map((url) => url.trim());
  const bad = urls.findIndex((url) => !isWebAddress(url));
  if (bad !== -1) return wrong(`body.evidence_urls.${bad}`, 'Evidence must be an http(s) URL.');
  // Normalisation can lengthen a text, so the maximum is checked again.
  const lengths = { min: 0, max: 5_000 };
  const note = readText(body.resolution_note ?? '', 'body.resolution_note', lengths);
  if (isFault(note)) return note;
  return { resolution_note: note === '' ? null : note, evidence_urls: [...new Set(urls)] };
};

const readKnown = (given: string | null, question: QuestionRow, now: Date): Date | null | Fault => {
  if (given === null) return null;
  const known_at = new Date(given);
  if (known_at >= question.opens_at && known_at <= now) return known_at;
  const from = question.opens_at.toISOString();
  const message = `known_at must be between the opening (${from}) and now.`;
  const fields = [{ path: 'body.known_at', message }];
  return refuseFields(fields, message);
};

/** Reads the outcome of a number or a date. It may lie outside the range, even a closed one. */
export const readOutcome = (
  given: Value | undefined,
  question: Parameters<typeof rangeOf>[0],
): number | null | Fault => {
  const range = rangeOf(question);
  const path = 'body.outcome_value';
  if (range === null) {
    return given === undefined ? null : wrong(path, 'This question has no outcome_value.');
  }
  const value = given === undefined ? null : readValue(given, range.is_date);
  if (value === null) return wrong(path, `outcome_value must be ${nounOf(range)}.`);
  return fitValue(value, range);
};

/** Reads a decision and checks it against the question's type, options and opening time. */
export const readDecision = (
  body: ResolveBody,
  question: QuestionRow,
  now: Date,
): Decision | Fault => {
  const reasons = readReasons(body);
  if ('kind' in reasons) return reasons;
  const known_at = readKnown(body.known_at ?? null, question, now);
  if (isFault(known_at)) return known_at;
  const { outcome, correct_options } = body;
  const outcome_value = readOutcome(body.outcome_value, question);
  if (isFault(outcome_value)) return outcome_value;
  const none = { outcome: null, correct_options: null, outcome_value: null };
  if (outcome_value !== null) {
    for (const name of ['outcome', 'correct_options'] as const) {
      if (body[name] !== undefined) return wrong(`body.${name}`, 'Send only outcome_value.');
    }
    return { ...none, kind: 'resolve', outcome_value, known_at, ...reasons };
  }
  if (question.question_type === 'binary') {
    if (correct_options !== undefined) {
      return wrong('body.correct_options', 'This is a yes/no question. Send outcome instead.');
    }
    if (outcome === undefined) return wrong('body.outcome', 'Send outcome: true or false.');
    return { ...none, kind: 'resolve', outcome, known_at, ...reasons };
  }
  if (outcome !== undefined) {
    return wrong('body.outcome', 'This question has options. Send correct_options instead.');
  }
  const right = readOptions(correct_options ?? [], question.options);
  if ('kind' in right) return right;
  return { ...none, kind: 'resolve', correct_options: right, known_at, ...reasons };
};

/** Refuses an outcome that was sent together with `void: true`. */
export const refuseBoth = (member: string): Fault =>
  wrong(`body.${member}`, 'Send either void or an outcome, not both.');

export const readVoiding = (body: VoidBody): Decision | Fault => {
  const reasons = readReasons(body);
  if ('kind' in reasons) return reasons;
  const none = { outcome: null, correct_options: null, outcome_value: null, known_at: null };
  return { ...none, kind: 'void', ...reasons };
};

type Outcome = Pick<Decision, 'outcome' | 'correct_options' | 'outcome_value'>;

/** Both outcomes must list correct options in the question's order. */
export const isSameOutcome = (a: Outcome, b: Outcome): boolean => {
  const textOf = (o: Outcome) => JSON.stringify([o.outcome, o.correct_options, o.outcome_value]);
  return textOf(a) === textOf(b);
};

/** True if the decisions are equal. A repeated call then makes no new revision. */
export const isSameDecision = (a: Decision, b: Decision): boolean => {
  const textOf = ({ kind, known_at, resolution_note, evidence_urls }: Decision) =>
    JSON.stringify([kind, known_at, resolution_note, evidence_urls]);
  return isSameOutcome(a, b) && textOf(a) === textOf(b);
};

/** Returns the number of options. A yes/no question has two: YES and NO. */
export const countOptions = (options: readonly string[]): number => options.length || 2;

/** Returns the indices of the correct options. In a yes/no question YES is 0 and NO is 1. */
export const correctIndices = (
  decided: Omit<Outcome, 'outcome_value'>,
  options: readonly string[],
): readonly number[] => {
  if (decided.outcome !== null) return [decided.outcome ? 0 : 1];
  return (decided.correct_options ?? []).map((option) => options.indexOf(option));
};

/** How long a resolution can be disputed. A new revision restarts this time. */
export const window_ms = 72 * 3_600_000;

export interface Filing {
  readonly reason: string;
  /** In the given order, without duplicates. */
  readonly evidence_urls: readonly string[];
}

const readEvidence = (urls: readonly string[]): readonly string[] | Fault => {
  const trimmed = urls.map((url) => url.trim());
  const fields = trimmed.flatMap((url, n) =>
    isWebAddress(url)
      ? []
      : [{ path: `body.evidence_urls.${n}`, message: 'must be an http(s) URL' }],
  );
  if (fields.length === 0) return [...new Set(trimmed)];
  const message = 'Evidence must be http(s) URLs.';
  return refuseFields(fields, message);
};

export const readFiling = (body: FileBody): Filing | Fault => {
  const reason = readText(body.reason, 'body.reason', reason_limits);
  if (isFault(reason)) return reason;
  const evidence_urls = readEvidence(body.evidence_urls ?? []);
  if (isFault(evidence_urls)) return evidence_urls;
  const objection = findObjection(reason);
  if (objection === null) return { reason, evidence_urls };
  return refuse(prediction_faults.CONTENT_REJECTED, {
    message: objection.detail,
    fields: [{ path: 'body.reason', message: objection.detail }],
  });
};

export interface Disputed {
  readonly status: string;
  readonly resolved_at: Date | null;
  readonly has_predicted: boolean;
}

/** Returns why this agent cannot dispute the question now, or null if it can. */
export const whyNotDisputable = (question: Disputed, now: Date): Fault | null => {
  const { status, resolved_at, has_predicted } = question;
  if (status !== 'resolved' || resolved_at === null) {
    return refuse(dispute_faults.QUESTION_NOT_RESOLVED, {
      message: `Only a resolved question can be disputed. This one is ${status}.`,
    });
  }
  if (!has_predicted) return refuse(dispute_faults.PREDICTION_REQUIRED);
  if (now.getTime() - resolved_at.getTime() <= window_ms) return null;
  const until = new Date(resolved_at.getTime() + window_ms).toISOString();
  return refuse(dispute_faults.DISPUTE_WINDOW_CLOSED, {
    message: `This resolution could be disputed until ${until}.`,
  });
};
