import type { Static } from '@sinclair/typebox';
import type { Sql } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makePage, pageHeaders, readPage } from '../../http/page.js';
import { type Answer, reply, routeFor } from '../../http/route.js';
import { isFault, refuse } from '../../kit/fault.js';
import { prediction_faults } from '../predictions/index.js';
import {
  findVisible,
  type QuestionParts,
  question_faults,
  question_params,
} from '../questions/index.js';
import {
  decide_body,
  dispute_answer,
  dispute_faults,
  dispute_params,
  disputes_answer,
  disputes_query,
  file_body,
} from './dispute-schema.js';
import { countDisputes, listDisputes, readDispute } from './dispute-store.js';
import { decideDispute, fileDispute, withdrawDispute } from './disputing.js';
import { resolution_faults } from './schema.js';

const route = routeFor<Deps & QuestionParts>();
const tag = 'disputes';
const absent = dispute_faults.DISPUTE_NOT_FOUND;

const on_dispute = { params: dispute_params, absent, returns: { 200: dispute_answer } };

const file = route({
  id: 'fileDispute',
  method: 'POST',
  path: '/api/questions/{id}/dispute',
  summary: 'Dispute the resolution of a question that you predicted on, within 72 hours',
  tag,
  auth: 'linked',
  limits: ['comments'],
  keeps: 'inside',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  body: file_body,
  returns: { 201: dispute_answer },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    prediction_faults.CONTENT_REJECTED,
    dispute_faults.QUESTION_NOT_RESOLVED,
    dispute_faults.PREDICTION_REQUIRED,
    dispute_faults.DISPUTE_WINDOW_CLOSED,
    dispute_faults.DUPLICATE_DISPUTE,
  ],
  handle: fileDispute,
});

interface ListAsk {
  readonly path: string;
  readonly query: Static<typeof disputes_query>;
  readonly question_id?: string;
}

const list = async (sql: Sql, { path, query, question_id }: ListAsk): Promise<Answer> => {
  const ask = readPage(query, ['id']);
  if (isFault(ask)) return ask;
  const filter = { status: query.status, ...(question_id === undefined ? {} : { question_id }) };
  const [rows, total] = await Promise.all([
    listDisputes(sql, filter, ask),
    countDisputes(sql, filter),
  ]);
  const { rows: disputes, next_cursor } = makePage(rows, ask.limit, (row) => [row.id]);
  return reply(200, { total, disputes, next_cursor }, pageHeaders(path, query, next_cursor));
};

const listOfQuestion = route({
  id: 'listDisputes',
  method: 'GET',
  path: '/api/questions/{id}/disputes',
  summary: 'Disputes of a question, newest first',
  tag,
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: disputes_query,
  returns: { 200: disputes_answer },
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const path = `/api/questions/${params.id}/disputes`;
    return list(deps.sql, { path, query, question_id: params.id });
  },
});

const getDispute = route({
  ...on_dispute,
  id: 'getDispute',
  method: 'GET',
  path: '/api/disputes/{id}',
  summary: 'One dispute',
  tag,
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
  summary: 'Withdraw your own dispute while it is open',
  tag,
  auth: 'linked',
  keeps: 'inside',
  faults: [absent, dispute_faults.DISPUTE_NOT_OPEN],
  handle: withdrawDispute,
});

const decide = route({
  ...on_dispute,
  id: 'decideDispute',
  method: 'POST',
  path: '/api/admin/disputes/{id}/resolve',
  summary: 'Uphold a dispute with the new outcome, or reject it',
  tag,
  auth: 'admin',
  keeps: 'inside',
  body: decide_body,
  faults: [
    absent,
    dispute_faults.DISPUTE_NOT_OPEN,
    dispute_faults.OUTCOME_UNCHANGED,
    resolution_faults.INVALID_OUTCOME,
    question_faults.INVALID_TRANSITION,
  ],
  handle: decideDispute,
});

const listAll = route({
  id: 'listAllDisputes',
  method: 'GET',
  path: '/api/admin/disputes',
  summary: 'Disputes of all questions, newest first; ?status=open is what waits for a decision',
  tag,
  auth: 'admin',
  query: disputes_query,
  returns: { 200: disputes_answer },
  handle: ({ query }, { sql }) => list(sql, { path: '/api/admin/disputes', query }),
});

export const routes = [file, listOfQuestion, getDispute, withdraw, decide, listAll];
