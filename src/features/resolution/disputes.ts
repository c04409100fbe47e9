import type { Tx } from '../../db/client.js';
import { emit } from '../../db/event.js';
import type { AgentCaller, Caller, HumanCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { type Answer, type Context, reply } from '../../http/route.js';
import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { readText } from '../../kit/text.js';
import { findAgent } from '../accounts/index.js';
import { agents_faults } from '../accounts/schema.js';
import { adminName, recordAct } from '../audit/index.js';
import { dispute_opened, dispute_resolved } from '../events/catalogue.js';
import { notify } from '../notifications/index.js';
import { type QuestionParts, type QuestionRow, readQuestion } from '../questions/index.js';
import { question_faults } from '../questions/schema.js';
import { decideQuestion } from './deciding.js';
import {
  type Decision,
  isSameOutcome,
  readDecision,
  readFiling,
  readVoiding,
  refuseBoth,
  whyNotDisputable,
} from './rules.js';
import { type DecideBody, dispute_faults, type FileBody, note_limits } from './schema.js';
import * as store from './store.js';

/** Agents, or their owners for them, file and withdraw disputes. An admin decides them. */

type Member = AgentCaller | HumanCaller;
type Call<B, C extends Caller = Member> = Context<{ readonly id: string }, unknown, B, C>;

/** Returns true if the caller is this agent or owns it. A suspended agent disputes nothing. */
const actsFor = async (tx: Tx, caller: Member, agent_id: string): Promise<boolean> => {
  if (caller.kind === 'agent') return caller.id === agent_id;
  const agent = await findAgent(tx, agent_id);
  return agent?.owner_id === caller.id && agent.suspended_at === null;
};

const eventOf = async (
  tx: Tx,
  { id: dispute_id, question_id, user_id }: store.DisputeRow,
  at: Date,
) => {
  const { question = '' } = (await readQuestion(tx, question_id)) ?? {};
  const data = { dispute_id, question_id, question, user_id };
  return { at, scope: { question_id, agent_id: user_id }, data };
};

export const fileDispute = async (call: Call<FileBody>, { sql, clock }: Deps): Promise<Answer> => {
  const filing = readFiling(call.body);
  if (isFault(filing)) return filing;
  const { caller } = call;
  const agent_id = call.body.agent_id ?? (caller.kind === 'agent' ? caller.id : null);
  return call.write(sql, async (tx) => {
    const at = clock();
    const question = await store.lockDisputedQuestion(tx, call.params.id, agent_id);
    const is_foreign_draft = question?.status === 'draft' && question.author_id !== caller.id;
    if (question === undefined || is_foreign_draft) {
      return refuse(question_faults.QUESTION_NOT_FOUND);
    }
    if (agent_id === null) return refuseFields([{ path: 'body.agent_id', message: 'is required' }]);
    if (!(await actsFor(tx, caller, agent_id))) return refuse(agents_faults.AGENT_NOT_FOUND);
    const why_not = whyNotDisputable(question, at);
    if (why_not !== null) return why_not;
    const { id: question_id, revision } = question;
    const made = { ...filing, id: makeId(), question_id, agent_id, revision, at };
    const dispute = await store.insertDispute(tx, made);
    if (dispute === undefined) return refuse(dispute_faults.DUPLICATE_DISPUTE);
    const { data, ...event } = await eventOf(tx, dispute, at);
    await emit(tx, dispute_opened, { ...event, data: { ...data, user_name: dispute.user_name } });
    return reply(201, { dispute });
  });
};

const end = async (tx: Tx, ending: store.Ending): Promise<store.DisputeRow | Fault> => {
  const dispute = await store.endDispute(tx, ending);
  if (dispute === undefined) return refuse(dispute_faults.DISPUTE_NOT_OPEN);
  const { data, ...event } = await eventOf(tx, dispute, ending.at);
  await emit(tx, dispute_resolved, { ...event, data: { ...data, status: dispute.status } });
  return dispute;
};

/** Only the agent that filed the dispute and its owner can withdraw it. Others do not find it. */
export const withdrawDispute = (call: Call<unknown>, { sql, clock }: Deps): Promise<Answer> =>
  call.write(sql, async (tx) => {
    const { id } = call.params;
    const before = await store.readDispute(tx, id);
    if (before === undefined || !(await actsFor(tx, call.caller, before.user_id))) {
      return refuse(dispute_faults.DISPUTE_NOT_FOUND);
    }
    const none = { note: null, decided_by: null, new_revision: null };
    const dispute = await end(tx, { ...none, id, status: 'withdrawn', at: clock() });
    return isFault(dispute) ? dispute : reply(200, { dispute });
  });

interface Made {
  readonly body: DecideBody;
  readonly note: string;
  readonly at: Date;
}

/** Returns the members of the outcome that the body states. */
const outcomeOf = (body: DecideBody) => {
  const { outcome, correct_options, outcome_value, known_at } = body;
  return {
    ...(body.void === true ? { void: true } : {}),
    ...(outcome === undefined ? {} : { outcome }),
    ...(correct_options === undefined ? {} : { correct_options }),
    ...(outcome_value === undefined ? {} : { outcome_value }),
    ...(known_at === undefined ? {} : { known_at }),
  };
};

const decisionOf = (
  body: DecideBody,
  about: { question: QuestionRow; note: string; evidence_urls: readonly string[]; at: Date },
  known_at: string | null,
): Decision | Fault => {
  const { question, note, at } = about;
  const reasons = { resolution_note: note, evidence_urls: [...about.evidence_urls] };
  const { void: is_void, ...outcome } = outcomeOf(body);
  if (is_void !== true) return readDecision({ known_at, ...outcome, ...reasons }, question, at);
  const [extra] = Object.keys(outcome);
  return extra === undefined ? readVoiding(reasons) : refuseBoth(extra);
};

/**
 * Resolves the question again for an upheld dispute and returns the revision. If another dispute of
 * the same resolution already led to this outcome, returns the current revision.
 */
const resolveAnew = async (tx: Tx, row: store.DisputeRow, made: Made): Promise<number | Fault> => {
  const { body, note, at } = made;
  const { question_id, id, revision } = row;
  const question = await readQuestion(tx, question_id);
  if (question === undefined) throw new Error(`question ${question_id} of a dispute is gone`);
  const evidence_urls = [...(body.evidence_urls ?? row.evidence_urls)];
  const known_at = (await store.readLatest(tx, question_id))?.known_at?.toISOString() ?? null;
  const decision = decisionOf(body, { question, note, evidence_urls, at }, known_at);
  if (isFault(decision)) return decision;
  if (isSameOutcome(decision, question)) {
    if (question.revision > revision) return question.revision;
    return refuse(dispute_faults.OUTCOME_UNCHANGED);
  }
  const decided_by = `dispute:${id}`;
  const decided = await decideQuestion(tx, { question_id, decided_by, at, decide: () => decision });
  return isFault(decided) ? decided : decided.resolution.revision;
};

const readNote = (body: DecideBody): string | Fault => {
  const [extra] = Object.keys(outcomeOf(body));
  if (body.status === 'rejected' && extra !== undefined) {
    return refuseFields(
      [{ path: `body.${extra}`, message: 'must be sent only with status "upheld"' }],
      'A rejected dispute does not change the outcome. Send no outcome.',
    );
  }
  return readText(body.note, 'body.note', note_limits);
};

const record = async (
  tx: Tx,
  row: store.DisputeRow,
  made: Made & { admin: string },
): Promise<void> => {
  const { admin, body, note, at } = made;
  const { id, question_id, user_id: agent_id, status, new_revision } = row;
  await recordAct(tx, {
    admin,
    question_id,
    reason: note,
    at,
    act: status === 'upheld' ? 'dispute.uphold' : 'dispute.reject',
    subject: { kind: 'dispute', id },
    details: { ...outcomeOf(body), ...(new_revision === null ? {} : { new_revision }) },
  });
  await notify(tx, [
    {
      agent_id,
      kind: 'dispute.decided',
      cause: `dispute:${id}`,
      question_id,
      at,
      subject_id: id,
      details: { status, note: note.slice(0, 500) },
    },
  ]);
};

/**
 * Upholding a dispute resolves the question again, as a new revision decided by `dispute:<id>`. The
 * job then reverses the payments of the earlier revision. This is one transaction under the
 * question's lock: if several decisions arrive together, one wins and the others are refused.
 */
export const decideDispute = async (
  call: Call<DecideBody, Caller>,
  deps: Deps & QuestionParts,
): Promise<Answer> => {
  const { id } = call.params;
  const { body } = call;
  const { status } = body;
  const note = readNote(body);
  if (isFault(note)) return note;
  const made = { body, note, at: deps.clock() };
  let resolved_id: string | null = null;
  const answer = await call.write(deps.sql, async (tx) => {
    const before = await store.lockForDecision(tx, id);
    if (before === undefined) return refuse(dispute_faults.DISPUTE_NOT_FOUND);
    if (before.status !== 'open') {
      return refuse(dispute_faults.DISPUTE_NOT_OPEN, {
        message: `This dispute is already ${before.status}.`,
      });
    }
    const new_revision = status === 'upheld' ? await resolveAnew(tx, before, made) : null;
    if (isFault(new_revision)) return new_revision;
    const admin = adminName(call.caller);
    const ended = await end(tx, { id, status, note, decided_by: admin, new_revision, at: made.at });
    if (isFault(ended)) return ended;
    await record(tx, ended, { ...made, admin });
    if (status === 'upheld') resolved_id = ended.question_id;
    return reply(200, { dispute: ended });
  });
  if (resolved_id !== null) deps.questions.forget(resolved_id);
  return answer;
};
