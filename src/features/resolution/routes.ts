import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { isFault, refuse } from '../../kit/fault.js';
import { nullable } from '../../kit/http/openapi.js';
import { type Answer, type Context, reply, routeFor } from '../../kit/http/route.js';
import type { Tx } from '../../kit/pg/client.js';
import { adminName, recordAct } from '../audit/index.js';
import {
  type QuestionParts,
  question_faults,
  question_params,
  question_schema,
  readQuestion,
  toWire as toQuestionWire,
} from '../questions/index.js';
import { type DecideAsk, type Decided, decideQuestion, wakeSettling } from './decide.js';
import { readDecision, readVoiding } from './rules.js';
import { resolution_faults, resolution_schema, resolve_body, void_body } from './schema.js';
import { readResolutions, toWire } from './store.js';

type Needs = Deps & QuestionParts;
const route = routeFor<Needs>();
const tag = 'resolution';

const decided_schema = Type.Object({ question: question_schema, resolution: resolution_schema });

const answerOf = ({ question, resolution }: Decided): Answer =>
  reply(resolution.state === 'running' ? 202 : 200, {
    question: toQuestionWire(question),
    resolution: toWire(resolution),
  });

/** The act of an admin beside what it decided, in the same transaction. */
const record = async (tx: Tx, { question, resolution }: Decided, at: Date): Promise<void> => {
  const { kind, outcome, correct_options, revision, note, decided_by } = resolution;
  await recordAct(tx, {
    admin: decided_by,
    act: `question.${kind}`,
    subject: { kind: 'question', id: question.id },
    reason: note,
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
  if (decided.changed) wakeSettling(deps);
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

const getResolution = route({
  id: 'getResolution',
  method: 'GET',
  path: '/api/admin/questions/{id}/resolution',
  summary: 'The latest decision about a question and how far its settling is, and all revisions',
  tag,
  auth: 'admin',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  returns: {
    200: Type.Object({
      resolution: nullable(resolution_schema),
      revisions: Type.Array(resolution_schema),
    }),
  },
  faults: [question_faults.QUESTION_NOT_FOUND],
  handle: async ({ params }, { sql }) => {
    if ((await readQuestion(sql, params.id)) === undefined) {
      return refuse(question_faults.QUESTION_NOT_FOUND);
    }
    const revisions = (await readResolutions(sql, params.id)).map(toWire);
    return reply(200, { resolution: revisions[0] ?? null, revisions });
  },
});

export const admin_routes = [resolve, voidQuestion, getResolution];
