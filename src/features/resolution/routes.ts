import { type Static, Type } from '@sinclair/typebox';
import type { Sql } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { type Answer, type Context, reply, routeFor } from '../../http/route.js';
import { isFault, refuse } from '../../kit/fault.js';
import { agents_faults } from '../accounts/schema.js';
import { adminName } from '../audit/index.js';
import { prediction_faults } from '../predictions/faults.js';
import { findVisible, type QuestionParts, toWire as toQuestionWire } from '../questions/index.js';
import { showOutcome } from '../questions/range.js';
import { question_faults, question_params, question_schema } from '../questions/schema.js';
import { type DecisionRequest, decideQuestion, recordDecision } from './deciding.js';
import { decideDispute, fileDispute, withdrawDispute } from './disputes.js';
import { preview } from './preview.js';
import { receipt_routes } from './receipts.js';
import { readDecision, readVoiding } from './rules.js';
import * as wire from './schema.js';
import { countDisputes, listDisputes, readDispute } from './store.js';

type Needs = Deps & QuestionParts;
const route = routeFor<Needs>();

const decided_schema = Type.Object({
  question: question_schema,
  resolution: wire.resolution_schema,
});

type Call = Pick<Context<{ readonly id: string }>, 'params' | 'caller' | 'write'>;

const decide = async (
  ctx: Call,
  deps: Needs,
  decision: DecisionRequest['decide'],
): Promise<Answer> => {
  const question_id = ctx.params.id;
  const at = deps.clock();
  const decided_by = adminName(ctx.caller);
  const answer = await ctx.write(deps.sql, async (tx) => {
    const made = await decideQuestion(tx, { question_id, decided_by, at, decide: decision });
    if (isFault(made)) return made;
    if (made.changed) await recordDecision(tx, made, at);
    return reply(made.resolution.state === 'running' ? 202 : 200, {
      question: toQuestionWire(made.question),
      resolution: { ...made.resolution, outcome_value: showOutcome(made.question) },
    });
  });
  deps.questions.forget(question_id);
  return answer;
};

const decision = {
  ...({ method: 'POST', tag: 'resolution', auth: 'admin', stores_answer: 'inside' } as const),
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  returns: { 202: decided_schema, 200: decided_schema },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    question_faults.INVALID_TRANSITION,
    wire.resolution_faults.INVALID_OUTCOME,
  ],
};

const resolve = route({
  ...decision,
  id: 'resolveQuestion',
  path: '/api/admin/questions/{id}/resolve',
  summary: 'Resolve a closed question, or correct a decision; settling runs in the background',
  body: wire.resolve_body,
  handle: (ctx, deps) => decide(ctx, deps, (question, at) => readDecision(ctx.body, question, at)),
});

const voidQuestion = route({
  ...decision,
  id: 'voidQuestion',
  path: '/api/admin/questions/{id}/void',
  summary: 'Void a question: no one is scored or paid, and earlier payments are reversed',
  body: wire.void_body,
  handle: (ctx, deps) => decide(ctx, deps, () => readVoiding(ctx.body)),
});

const absent = wire.dispute_faults.DISPUTE_NOT_FOUND;

const on_dispute = { params: wire.dispute_params, absent, returns: { 200: wire.dispute_answer } };

const file = route({
  id: 'fileDispute',
  method: 'POST',
  path: '/api/questions/{id}/dispute',
  summary:
    'Dispute the resolution of a question that you or your agent predicted on, within 72 hours',
  tag: 'disputes',
  auth: 'member',
  limits: ['comments'],
  stores_answer: 'inside',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  body: wire.file_body,
  returns: { 201: wire.dispute_answer },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    agents_faults.AGENT_NOT_FOUND,
    prediction_faults.CONTENT_REJECTED,
    wire.dispute_faults.QUESTION_NOT_RESOLVED,
    wire.dispute_faults.PREDICTION_REQUIRED,
    wire.dispute_faults.DISPUTE_WINDOW_CLOSED,
    wire.dispute_faults.DUPLICATE_DISPUTE,
  ],
  handle: fileDispute,
});

type DisputesQuery = Static<typeof wire.disputes_query>;

const list = (sql: Sql, path: string, query: DisputesQuery, question_id: string | null) => {
  const filter = { status: query.status, question_id };
  return replyPage({
    path,
    query,
    plural: 'disputes',
    read: (page) => listDisputes(sql, filter, page),
    count: async () => ({ total: await countDisputes(sql, filter) }),
  });
};

const listOfQuestion = route({
  id: 'listDisputes',
  method: 'GET',
  path: '/api/questions/{id}/disputes',
  summary: 'Disputes about a question, newest first',
  tag: 'disputes',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: wire.disputes_query,
  returns: { 200: wire.disputes_answer },
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    return list(deps.reads, `/api/questions/${params.id}/disputes`, query, params.id);
  },
});

const getDispute = route({
  ...on_dispute,
  id: 'getDispute',
  method: 'GET',
  path: '/api/disputes/{id}',
  summary: 'One dispute',
  tag: 'disputes',
  auth: 'public',
  faults: [absent],
  cacheable: true,
  handle: async ({ params }, { sql }) => {
    const dispute = await readDispute(sql, params.id);
    return dispute === undefined ? refuse(absent) : reply(200, { dispute });
  },
});

const withdraw = route({
  ...on_dispute,
  id: 'withdrawDispute',
  method: 'POST',
  path: '/api/disputes/{id}/withdraw',
  summary: 'Withdraw your own dispute, or the dispute of your agent, while it is open',
  tag: 'disputes',
  auth: 'member',
  stores_answer: 'inside',
  faults: [absent, wire.dispute_faults.DISPUTE_NOT_OPEN],
  handle: withdrawDispute,
});

const decideOne = route({
  ...on_dispute,
  id: 'decideDispute',
  method: 'POST',
  path: '/api/admin/disputes/{id}/resolve',
  summary: 'Uphold a dispute with the new outcome, or reject it',
  tag: 'disputes',
  auth: 'admin',
  stores_answer: 'inside',
  body: wire.decide_body,
  faults: [
    absent,
    wire.dispute_faults.DISPUTE_NOT_OPEN,
    wire.dispute_faults.OUTCOME_UNCHANGED,
    wire.resolution_faults.INVALID_OUTCOME,
    question_faults.INVALID_TRANSITION,
  ],
  handle: decideDispute,
});

const listAll = route({
  id: 'listAllDisputes',
  method: 'GET',
  path: '/api/admin/disputes',
  summary: 'Disputes about all questions, newest first; ?status=open lists the undecided ones',
  tag: 'disputes',
  auth: 'admin',
  query: wire.disputes_query,
  returns: { 200: wire.disputes_answer },
  handle: ({ query }, { reads: sql }) => list(sql, '/api/admin/disputes', query, null),
});

export const routes = [
  resolve,
  preview,
  voidQuestion,
  ...receipt_routes,
  file,
  listOfQuestion,
  getDispute,
  withdraw,
  decideOne,
  listAll,
];
