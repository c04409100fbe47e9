import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { findObjection, readText } from '../../kit/text.js';
import { prediction_faults } from '../predictions/index.js';
import { dispute_faults, type FileBody, reason_limits } from './dispute-schema.js';
import { type Decision, isWebAddress } from './rules.js';

/** Rules of disputes, without I/O and without a clock of their own. */

/** How long after a resolution it can be disputed; a new revision begins it anew. */
export const window_ms = 72 * 3_600_000;

export interface Filing {
  readonly reason: string;
  /** In the order given, each once. */
  readonly evidence_urls: readonly string[];
}

const readEvidence = (urls: readonly string[]): readonly string[] | Fault => {
  const kept = urls.map((url) => url.trim());
  const fields = kept.flatMap((url, n) =>
    isWebAddress(url) ? [] : [{ path: `body.evidence_urls.${n}`, message: 'An http(s) URL' }],
  );
  if (fields.length === 0) return [...new Set(kept)];
  return refuse(common_faults.INVALID_REQUEST, {
    message: 'Evidence is given as http(s) URLs.',
    fields,
  });
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

/** Why this agent cannot dispute the question now; null when it can. */
export const whyNotDisputable = (question: Disputed, now: Date): Fault | null => {
  const { status, resolved_at, has_predicted } = question;
  if (status !== 'resolved' || resolved_at === null) {
    return refuse(dispute_faults.QUESTION_NOT_RESOLVED, {
      message: `Only a resolved question can be disputed; this one is ${status}.`,
    });
  }
  if (!has_predicted) return refuse(dispute_faults.PREDICTION_REQUIRED);
  if (now.getTime() - resolved_at.getTime() <= window_ms) return null;
  const until = new Date(resolved_at.getTime() + window_ms).toISOString();
  return refuse(dispute_faults.DISPUTE_WINDOW_CLOSED, {
    message: `This resolution could be disputed until ${until}.`,
  });
};

type Outcome = Pick<Decision, 'outcome' | 'correct_options'>;

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Correct options stand in the order of the question. */
export const isSameOutcome = (a: Outcome, b: Outcome): boolean =>
  a.outcome === b.outcome && isSame(a.correct_options, b.correct_options);
