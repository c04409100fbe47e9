import type { Tx } from '../../db/client.js';
import { type Fault, isFault } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { recordAct } from '../audit/index.js';
import { act } from '../moderation/index.js';
import { notify } from '../notifications/index.js';
import { readQuestion } from '../questions/index.js';
import { decideQuestion, recordDecision } from '../resolution/index.js';
import { readVoiding } from '../resolution/rules.js';
import { statusAfter } from './rules.js';
import type { CaseDecision } from './schema.js';
import * as store from './store.js';

/**
 * Decides a case: the action on its subject, the end of the case, the line in the audit log and the
 * notifications, all in the caller's transaction.
 */

export interface Decided {
  readonly decision: CaseDecision;
  readonly reason: string;
  /** The result of `adminName`. */
  readonly admin: string;
  readonly at: Date;
}

const voidReported = async (
  tx: Tx,
  question_id: string,
  { reason, admin, at }: Decided,
): Promise<Fault | null> => {
  // The question may have been voided since it was reported.
  if ((await readQuestion(tx, question_id))?.status === 'voided') return null;
  const decide = () => readVoiding({ resolution_note: reason });
  const made = await decideQuestion(tx, { question_id, decided_by: admin, at, decide });
  if (isFault(made)) return made;
  if (made.changed) await recordDecision(tx, made, at);
  return null;
};

/** Carries out the decision. An action that was taken before is not repeated. */
const enforce = async (
  tx: Tx,
  { kind, subject_id: id, author_id }: store.LockedCase,
  made: Decided,
): Promise<Fault | null> => {
  const { decision, admin, reason, at } = made;
  if (decision === 'keep') return null;
  if (kind === 'question') return voidReported(tx, id, made);
  if (kind !== 'agent') await act(tx, { kind, verb: 'hide', id, admin, reason, at });
  if (decision === 'suspend' && author_id !== null) {
    await act(tx, { kind: 'agent', verb: 'suspend', id: author_id, admin, reason, at });
  }
  return null;
};

/** Notifies everybody who reported: agents, with their owners, and people without an agent. */
const tellReporters = async (
  tx: Tx,
  { id, kind, subject_id, question_id }: store.LockedCase,
  { decision, reason, at }: Decided,
): Promise<void> => {
  const details = { subject_kind: kind, status: statusAfter[decision], reason };
  await store.tellPeople(tx, id, {
    ...{ id: makeId(), kind: 'report.decided', cause: `case:${id}`, details, at },
    ...(question_id === null ? {} : { question_id }),
  });
  const reporters = await store.listReporters(tx, id);
  await notify(
    tx,
    reporters.flatMap(({ agent_id, report_id }) =>
      agent_id === null
        ? []
        : {
            agent_id,
            kind: 'report.decided' as const,
            cause: `report:${report_id}`,
            ...(question_id === null ? {} : { question_id }),
            subject_id,
            details,
            at,
          },
    ),
  );
};

/** Returns a fault, and changes nothing, if the question cannot be voided. */
export const decideCase = async (
  tx: Tx,
  reported: store.LockedCase,
  made: Decided,
): Promise<Fault | null> => {
  const refused = await enforce(tx, reported, made);
  if (refused !== null) return refused;
  const { id, kind, subject_id, question_id } = reported;
  const { decision, reason, admin, at } = made;
  await store.endCase(tx, { id, status: statusAfter[decision], reason, at });
  await recordAct(tx, {
    admin,
    act: decision === 'keep' ? 'report.keep' : 'report.uphold',
    subject: { kind, id: subject_id },
    ...(question_id === null ? {} : { question_id }),
    reason,
    details: { case_id: id, decision },
    at,
  });
  await tellReporters(tx, reported, made);
  return null;
};
