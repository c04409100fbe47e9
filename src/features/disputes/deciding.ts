import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import type { Caller } from '../../kit/http/route.js';
import { type Answer, type Reply, reply } from '../../kit/http/route.js';
import type { Tx } from '../../kit/pg/client.js';
import { readText } from '../../kit/text.js';
import { adminName, recordAct } from '../audit/index.js';
import { notify } from '../notifications/index.js';
import { type QuestionParts, readQuestion } from '../questions/index.js';
import { decideQuestion, readDecision, wakeSettling } from '../resolution/index.js';
import { announceEnding, mustRead } from './filing.js';
import { isSameOutcome } from './rules.js';
import { type DecideBody, dispute_faults, note_limits } from './schema.js';
import { type DisputeRow, endDispute, lockForDecision, toWire } from './store.js';

/**
 * An admin decides a dispute. Upheld means that the question is resolved anew, as a new revision
 * decided by `dispute:<id>`; the job then reverses what the earlier one paid. All of it is one
 * transaction under the question's lock: of several decisions at once one wins, and the others are
 * told that the dispute is not open any more.
 */

interface DecisionCall {
  readonly params: { readonly id: string };
  readonly body: DecideBody;
  readonly caller: Caller;
  keep(tx: Tx, answer: Answer): Promise<void>;
}

interface Made {
  readonly body: DecideBody;
  readonly note: string;
  readonly at: Date;
}

/**
 * The revision that holds the outcome of an upheld dispute. That outcome may have been reached
 * already, by another dispute of the same resolution: then nothing is resolved once more.
 */
const resolveAnew = async (tx: Tx, row: DisputeRow, made: Made): Promise<number | Fault> => {
  const { body, note, at } = made;
  const { question_id, id, revision, evidence_urls } = row;
  const question = await readQuestion(tx, question_id);
  if (question === undefined) throw new Error(`question ${question_id} of a dispute is gone`);
  const decision = readDecision(
    {
      ...(body.outcome === undefined ? {} : { outcome: body.outcome }),
      ...(body.correct_options === undefined ? {} : { correct_options: body.correct_options }),
      resolution_note: note,
      evidence_urls: [...(body.evidence_urls ?? evidence_urls)],
    },
    question,
  );
  if (isFault(decision)) return decision;
  if (isSameOutcome(decision, question)) {
    if (question.revision > revision) return question.revision;
    return refuse(dispute_faults.OUTCOME_UNCHANGED);
  }
  const decided = await decideQuestion(tx, {
    ...{ question_id, decided_by: `dispute:${id}`, at },
    decide: () => decision,
  });
  return isFault(decided) ? decided : decided.resolution.revision;
};

const readNote = (body: DecideBody): string | Fault => {
  const is_rejected = body.status === 'rejected';
  if (is_rejected && (body.outcome !== undefined || body.correct_options !== undefined)) {
    const path = body.outcome === undefined ? 'body.correct_options' : 'body.outcome';
    return refuse(common_faults.INVALID_REQUEST, {
      message: 'A rejected dispute changes no outcome; send none.',
      fields: [{ path, message: 'Only with status "upheld"' }],
    });
  }
  return readText(body.note, 'body.note', note_limits);
};

const record = async (tx: Tx, row: DisputeRow, made: Made & { admin: string }): Promise<void> => {
  const { admin, body, note, at } = made;
  const { id, question_id, agent_id, status, new_revision } = row;
  const { outcome, correct_options } = body;
  await recordAct(tx, {
    ...{ admin, question_id, reason: note, at },
    act: status === 'upheld' ? 'dispute.uphold' : 'dispute.reject',
    subject: { kind: 'dispute', id },
    details: {
      ...(outcome === undefined ? {} : { outcome }),
      ...(correct_options === undefined ? {} : { correct_options }),
      ...(new_revision === null ? {} : { new_revision }),
    },
  });
  await notify(tx, [
    {
      ...{ agent_id, kind: 'dispute.decided', cause: `dispute:${id}`, question_id, at },
      ...{ subject_id: id, details: { status, note: note.slice(0, 500) } },
    },
  ]);
};

const decideInside = async (tx: Tx, call: DecisionCall, made: Made): Promise<Reply | Fault> => {
  const { id } = call.params;
  const { status } = made.body;
  const before = await lockForDecision(tx, id);
  if (before === undefined) return refuse(dispute_faults.DISPUTE_NOT_FOUND);
  if (before.status !== 'open') {
    return refuse(dispute_faults.DISPUTE_NOT_OPEN, {
      message: `This dispute is ${before.status} already.`,
    });
  }
  const new_revision = status === 'upheld' ? await resolveAnew(tx, before, made) : null;
  if (isFault(new_revision)) return new_revision;
  const admin = adminName(call.caller);
  const { note, at } = made;
  await endDispute(tx, { id, status, note, decided_by: admin, new_revision, at });
  const row = await mustRead(tx, id);
  await announceEnding(tx, row, at);
  await record(tx, row, { ...made, admin });
  const answer = reply(200, { dispute: toWire(row) });
  await call.keep(tx, answer);
  return answer;
};

export const decideDispute = async (
  call: DecisionCall,
  deps: Deps & QuestionParts,
): Promise<Answer> => {
  const { body } = call;
  const note = readNote(body);
  if (isFault(note)) return note;
  const made = { body, note, at: deps.clock() };
  const answer = await deps.sql.begin((tx) => decideInside(tx, call, made));
  if (isFault(answer) || body.status !== 'upheld') return answer;
  const { dispute } = answer.body as { dispute: { question_id: string } };
  deps.questions.forget(dispute.question_id);
  wakeSettling(deps);
  return answer;
};
