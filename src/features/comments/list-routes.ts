import type { Deps } from '../../kit/deps.js';
import { isFault, refuse } from '../../kit/fault.js';
import { type Answer, reply, routeFor } from '../../kit/http/route.js';
import { isId } from '../../kit/ids.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import { prediction_faults } from '../predictions/index.js';
import { findVisible, question_faults, question_params } from '../questions/index.js';
import {
  comment_faults,
  comment_params,
  comments_page,
  comments_query,
  list_query,
  posted_schema,
  prediction_path,
  replies_page,
  replies_path,
} from './schema.js';
import {
  countFlat,
  flatKey,
  listFlat,
  readComment,
  readPredictionRef,
  type Scope,
  toWire,
} from './store.js';

const route = routeFor<Deps>();
const tag = 'comments';

interface FlatQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly offset?: number;
  readonly sort?: 'old' | 'new';
}

/** One page of a flat list; `plural` is the member that holds it. */
const replyFlat = async (
  deps: Deps,
  { scope, query }: { readonly scope: Scope; readonly query: FlatQuery },
  { plural, path }: { readonly plural: string; readonly path: string },
): Promise<Answer> => {
  const ask = readPage(query, ['id']);
  if (isFault(ask)) return ask;
  const [rows, total] = await Promise.all([
    listFlat(deps.sql, scope, query.sort ?? 'old', ask),
    countFlat(deps.sql, scope),
  ]);
  const { rows: shown, next_cursor } = makePage(rows, ask.limit, flatKey);
  return reply(
    200,
    { total, [plural]: shown.map(toWire), next_cursor },
    pageHeaders(path, { ...query }, next_cursor),
  );
};

const listComments = route({
  id: 'listComments',
  method: 'GET',
  path: '/api/questions/{id}/comments',
  summary: 'Comments and replies on a question, flat, oldest first; thread= for one thread of it',
  tag,
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: comments_query,
  returns: { 200: comments_page },
  faults: [question_faults.QUESTION_NOT_FOUND, comment_faults.COMMENT_NOT_FOUND],
  cacheable: true,
  async handle({ params, query, caller }, deps) {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const thread = query.thread?.toLowerCase();
    if (thread !== undefined && !isId(thread)) return refuse(comment_faults.COMMENT_NOT_FOUND);
    const scope = { question_id: question.id, thread };
    const path = `/api/questions/${question.id}/comments`;
    return replyFlat(deps, { scope, query }, { plural: 'comments', path });
  },
});

const listReplies = route({
  id: 'listReplies',
  method: 'GET',
  path: '/api/predictions/{pid}/replies',
  summary: 'Replies to a prediction and the threads below them, flat, oldest first',
  tag,
  auth: 'public',
  params: replies_path,
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  query: list_query,
  returns: { 200: replies_page },
  faults: [prediction_faults.PREDICTION_NOT_FOUND],
  cacheable: true,
  async handle({ params, query }, deps) {
    const prediction = await readPredictionRef(deps.sql, params.pid);
    if (prediction === undefined) return refuse(prediction_faults.PREDICTION_NOT_FOUND);
    const path = `/api/predictions/${params.pid}/replies`;
    const scope = { prediction_id: params.pid };
    return replyFlat(deps, { scope, query }, { plural: 'replies', path });
  },
});

const listQuestionReplies = route({
  id: 'listQuestionReplies',
  method: 'GET',
  path: '/api/questions/{id}/predictions/{pid}/replies',
  summary: 'The same as /api/predictions/{pid}/replies, of a prediction on this question',
  tag,
  auth: 'public',
  params: prediction_path,
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  query: list_query,
  returns: { 200: replies_page },
  faults: [prediction_faults.PREDICTION_NOT_FOUND],
  cacheable: true,
  async handle({ params, query }, deps) {
    const prediction = await readPredictionRef(deps.sql, params.pid);
    if (prediction?.question_id !== params.id.toLowerCase()) {
      return refuse(prediction_faults.PREDICTION_NOT_FOUND);
    }
    const path = `/api/questions/${params.id}/predictions/${params.pid}/replies`;
    return replyFlat(
      deps,
      { scope: { prediction_id: params.pid }, query },
      { plural: 'replies', path },
    );
  },
});

const getComment = route({
  id: 'getComment',
  method: 'GET',
  path: '/api/comments/{comment_id}',
  summary: 'One comment',
  tag,
  auth: 'public',
  params: comment_params,
  absent: comment_faults.COMMENT_NOT_FOUND,
  returns: { 200: posted_schema },
  faults: [comment_faults.COMMENT_NOT_FOUND],
  cacheable: true,
  async handle({ params }, { sql }) {
    const row = await readComment(sql, params.comment_id);
    if (row === undefined) return refuse(comment_faults.COMMENT_NOT_FOUND);
    return reply(200, { comment: toWire(row) });
  },
});

export const list_routes = [listComments, listReplies, listQuestionReplies, getComment];
