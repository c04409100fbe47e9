import { Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { type Answer, type Context, reply, routeFor } from '../../http/route.js';
import { isFault } from '../../kit/fault.js';
import { adminName, recordAct } from '../audit/index.js';
import {
  type QuestionParts,
  question_faults,
  question_params,
  question_schema,
  toWire as toQuestionWire,
} from '../questions/index.js';
import { type DecideAsk, type Decided, decideQuestion } from './deciding.js';
import { readDecision, readVoiding } from './rules.js';
import { resolution_faults, resolution_schema, resolve_body, void_body } from './schema.js';

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
