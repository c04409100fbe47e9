import { Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import { emit } from '../../db/event.js';
import type { Deps } from '../../http/deps.js';
import { type Answer, type Context, reply, routeFor } from '../../http/route.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { adminName, recordAct } from '../audit/index.js';
import { question_closed, question_resolved } from '../events/index.js';
import {
  markResolved,
  markVoided,
  type QuestionParts,
  type QuestionRow,
  question_faults,
  question_params,
  question_schema,
  readQuestion,
  toWire as toQuestionWire,
} from '../questions/index.js';
import { type Decision, isSameDecision, readDecision, readVoiding } from './rules.js';
import { resolution_faults, resolution_schema, resolve_body, void_body } from './schema.js';
import { insertResolution, lockQuestion, type ResolutionRow, readLatest } from './store.js';

/**
 * A decision takes effect at once: in one transaction the question changes its status and revision,
 * the event goes out, and a row tells the job what to settle. What agents get follows in chunks.
 *
 * Predictions are placed under a lock of the question while it is open, and a decision takes the
 * exclusive one: a prediction before it is settled with the others, one after it is refused.
 */

export interface Decided {
  readonly question: QuestionRow;
  readonly resolution: ResolutionRow;
  /** False: exactly this had been decided already, and nothing changed. */
  readonly changed: boolean;
}

interface DecideAsk {
  readonly question_id: string;
  /** `admin`, `human:<id>` or `dispute:<id>`. */
  readonly decided_by: string;
  readonly at: Date;
  /** Made from the question as it is under the lock. */
  decide(question: QuestionRow): Decision | Fault;
}

const resolveAndTell = async (tx: Tx, id: string, decision: Decision, at: Date) => {
  const { outcome, correct_options, resolution_note: note } = decision;
  const row = await markResolved(tx, { id, outcome, correct_options, note, at });
  if (isFault(row)) return row;
  await emit(tx, question_resolved, {
    at,
    place: { question_id: id },
    data: {
      question_id: id,
      question: row.question,
      ...(outcome === null ? {} : { outcome }),
      ...(correct_options === null ? {} : { correct_options: [...correct_options] }),
      revision: row.revision,
      resolved_at: at.toISOString(),
    },
  });
  return row;
};

const voidAndTell = async (tx: Tx, before: QuestionRow, note: string | null, at: Date) => {
  const { id, question } = before;
  const row = await markVoided(tx, { id, note, at });
  if (isFault(row) || before.status !== 'open') return row;
  // It takes no more predictions: that is what this event says.
  const data = { question_id: id, question, closed_at: at.toISOString() };
  await emit(tx, question_closed, { at, place: { question_id: id }, data });
  return row;
};

/** Decides within the caller's transaction. */
export const decideQuestion = async (tx: Tx, ask: DecideAsk): Promise<Decided | Fault> => {
  const { question_id, decided_by, at } = ask;
  const is_there = await lockQuestion(tx, question_id);
  const before = is_there ? await readQuestion(tx, question_id) : undefined;
  if (before === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  const decision = ask.decide(before);
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

type Needs = Deps & QuestionParts;
const route = routeFor<Needs>();
const tag = 'resolution';

const decided_schema = Type.Object({ question: question_schema, resolution: resolution_schema });

const answerOf = ({ question, resolution }: Decided): Answer =>
  reply(resolution.state === 'running' ? 202 : 200, {
    question: toQuestionWire(question),
    resolution,
  });

/** The act of an admin beside what it decided, in the same transaction. */
const record = async (tx: Tx, { question, resolution }: Decided, at: Date): Promise<void> => {
  const { kind, outcome, correct_options, revision, resolution_note, decided_by } = resolution;
  await recordAct(tx, {
    admin: decided_by,
    act: `question.${kind}`,
    subject: { kind: 'question', id: question.id },
    reason: resolution_note,
    details: {
      revision,
      ...(outcome === null ? {} : { outcome }),
      ...(correct_options === null ? {} : { correct_options }),
    },
    at,
  });
};

type Call = Pick<Context<{ readonly id: string }>, 'params' | 'caller' | 'keep'>;

const decide = async (ctx: Call, deps: Needs, decision: DecideAsk['decide']): Promise<Answer> => {
  const question_id = ctx.params.id;
  const at = deps.clock();
  const decided_by = adminName(ctx.caller);
  const decided = await deps.sql.begin(async (tx) => {
    const made = await decideQuestion(tx, { question_id, decided_by, at, decide: decision });
    if (isFault(made)) return made;
    if (made.changed) await record(tx, made, at);
    await ctx.keep(tx, answerOf(made));
    return made;
  });
  if (isFault(decided)) return decided;
  deps.questions.forget(question_id);
  return answerOf(decided);
};

const decision = {
  ...({ method: 'POST', tag, auth: 'admin', keeps: 'inside' } as const),
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  returns: { 202: decided_schema, 200: decided_schema },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    question_faults.INVALID_TRANSITION,
    resolution_faults.INVALID_OUTCOME,
  ],
};

const resolve = route({
  ...decision,
  id: 'resolveQuestion',
  path: '/api/admin/questions/{id}/resolve',
  summary: 'Resolve a closed question, or a resolved one anew; settling goes on in the background',
  body: resolve_body,
  handle: (ctx, deps) => decide(ctx, deps, (question) => readDecision(ctx.body, question)),
});

const voidQuestion = route({
  ...decision,
  id: 'voidQuestion',
  path: '/api/admin/questions/{id}/void',
  summary: 'Void an open or closed question: nobody is scored or paid',
  body: void_body,
  handle: (ctx, deps) => decide(ctx, deps, () => readVoiding(ctx.body)),
});

export const admin_routes = [resolve, voidQuestion];
