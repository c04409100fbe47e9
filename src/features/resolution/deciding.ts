import type { Tx } from '../../db/client.js';
import { emit } from '../../db/event.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { recordAct } from '../audit/index.js';
import { question_closed, question_resolved, question_voided } from '../events/catalogue.js';
import { markResolved, markVoided, type QuestionRow, readQuestion } from '../questions/index.js';
import { showOutcome } from '../questions/range.js';
import { question_faults } from '../questions/schema.js';
import { type Decision, isSameDecision } from './rules.js';
import { insertResolution, lockQuestion, type ResolutionRow, readLatest } from './store.js';

/**
 * A decision takes effect immediately. One transaction changes the question's status and revision,
 * emits the event and inserts a row for the settling job. The job pays the agents afterwards, in
 * chunks.
 *
 * Placing a prediction locks the open question, and a decision locks it exclusively. A prediction
 * placed before the decision is settled with the others. A later one is refused.
 */

export interface Decided {
  readonly question: QuestionRow;
  readonly resolution: ResolutionRow;
  /** False if the question already had exactly this decision. */
  readonly changed: boolean;
}

export interface DecisionRequest {
  readonly question_id: string;
  /** `admin`, `human:<id>` or `dispute:<id>`. */
  readonly decided_by: string;
  readonly at: Date;
  /** Makes the decision from the question, read under the lock. */
  decide(question: QuestionRow, at: Date): Decision | Fault;
}

const resolveAndTell = async (tx: Tx, id: string, decision: Decision, at: Date) => {
  const { outcome, correct_options, outcome_value, resolution_note: note } = decision;
  const decided = { outcome, correct_options, outcome_value };
  const row = await markResolved(tx, { id, ...decided, note, at });
  if (isFault(row)) return row;
  const value = showOutcome(row);
  await emit(tx, question_resolved, {
    at,
    scope: { question_id: id },
    data: {
      question_id: id,
      question: row.question,
      ...(outcome === null ? {} : { outcome }),
      ...(correct_options === null ? {} : { correct_options: [...correct_options] }),
      ...(value === null ? {} : { outcome_value: value }),
      revision: row.revision,
      resolved_at: at.toISOString(),
    },
  });
  return row;
};

const voidAndTell = async (tx: Tx, before: QuestionRow, note: string | null, at: Date) => {
  const { id, question } = before;
  const row = await markVoided(tx, { id, note, at });
  if (isFault(row)) return row;
  const of_event = { at, scope: { question_id: id } };
  const about = { question_id: id, question };
  if (before.status === 'open') {
    await emit(tx, question_closed, {
      ...of_event,
      data: { ...about, closed_at: at.toISOString() },
    });
  }
  await emit(tx, question_voided, {
    ...of_event,
    data: { ...about, reason: note, revision: row.revision, voided_at: at.toISOString() },
  });
  return row;
};

export const decideQuestion = async (
  tx: Tx,
  request: DecisionRequest,
): Promise<Decided | Fault> => {
  const { question_id, decided_by, at } = request;
  const is_there = await lockQuestion(tx, question_id);
  const before = is_there ? await readQuestion(tx, question_id) : undefined;
  if (before === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  const decision = request.decide(before, at);
  if (isFault(decision)) return decision;
  const latest = await readLatest(tx, question_id);
  if (latest !== undefined && isSameDecision(latest, decision)) {
    return { question: before, resolution: latest, changed: false };
  }
  const question =
    decision.kind === 'void'
      ? await voidAndTell(tx, before, decision.resolution_note, at)
      : await resolveAndTell(tx, question_id, decision, at);
  if (isFault(question)) return question;
  const { revision } = question;
  const made = { ...decision, question_id, revision, decided_by, at };
  return { question, resolution: await insertResolution(tx, made), changed: true };
};

/** Records the admin's action in the transaction of the decision. */
export const recordDecision = async (
  tx: Tx,
  { question, resolution }: Decided,
  at: Date,
): Promise<void> => {
  const { kind, outcome, correct_options, known_at, revision, resolution_note, decided_by } =
    resolution;
  const outcome_value = showOutcome(question);
  await recordAct(tx, {
    admin: decided_by,
    act: `question.${kind}`,
    subject: { kind: 'question', id: question.id },
    reason: resolution_note,
    details: {
      revision,
      ...(outcome === null ? {} : { outcome }),
      ...(correct_options === null ? {} : { correct_options }),
      ...(outcome_value === null ? {} : { outcome_value }),
      ...(known_at === null ? {} : { known_at }),
    },
    at,
  });
};
