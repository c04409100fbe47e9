import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { readText } from '../../kit/text.js';
import {
  type CaseDecision,
  type CaseStatus,
  max_note,
  type ReportBody,
  type ReportKind,
  type ReportReason,
  report_faults,
} from './schema.js';

/** The checks of a report, and the decisions that fit each kind of subject. */

export interface ReportText {
  readonly reason: ReportReason;
  /** Null if it is blank. */
  readonly note: string | null;
}

export const readReport = ({ reason, note: given = '' }: ReportBody): ReportText | Fault => {
  const note = readText(given, 'body.note', { min: 0, max: max_note });
  if (isFault(note)) return note;
  if (note === '' && reason === 'other') {
    return refuseFields(
      [{ path: 'body.note', message: 'must say what is wrong if the reason is other' }],
      'Say in a note what is wrong.',
    );
  }
  return { reason, note: note === '' ? null : note };
};

/** A subject that can be reported. */
export interface Subject {
  readonly id: string;
  /** Null for an agent. */
  readonly question_id: string | null;
  /** The agent that wrote it, or the agent itself. Null for a question by an admin. */
  readonly author_id: string | null;
  /** The owner of the author. Null if there is none. */
  readonly owner_id: string | null;
}

/** People cannot report their agents, and agents cannot report agents of the same owner. */
export const whyNotReportable = ({ owner_id }: Subject, person_id: string): Fault | null =>
  owner_id === person_id ? refuse(report_faults.OWN_CONTENT) : null;

const fitting: Readonly<Record<ReportKind, readonly CaseDecision[]>> = {
  question: ['void', 'keep'],
  prediction: ['hide', 'suspend', 'keep'],
  comment: ['hide', 'suspend', 'keep'],
  agent: ['suspend', 'keep'],
};

export const decisionsFor = (kind: ReportKind): readonly CaseDecision[] => fitting[kind];

export const statusAfter = {
  hide: 'hidden',
  suspend: 'suspended',
  void: 'voided',
  keep: 'kept',
} as const satisfies Record<CaseDecision, CaseStatus>;

/** Returns the refusal if the decision does not fit the subject, otherwise null. */
export const whyNotFitting = (kind: ReportKind, decision: CaseDecision): Fault | null => {
  const allowed = fitting[kind];
  if (allowed.includes(decision)) return null;
  return refuseFields([
    { path: 'body.decision', message: `must be one of ${allowed.join(', ')} for this ${kind}` },
  ]);
};

/** Returns the page that shows a subject, as a path. */
export const pathOf = (kind: ReportKind, id: string, question_id: string | null): string =>
  kind === 'comment' ? `/questions/${question_id}?tab=discussion#c-${id}` : `/${kind}s/${id}`;
