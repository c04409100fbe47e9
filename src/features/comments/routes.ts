import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { makePage, pageHeaders, readPage } from '../../http/page.js';
import { type Answer, reply, routeFor } from '../../http/route.js';
import { isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { points_faults } from '../points/index.js';
import { prediction_faults } from '../predictions/index.js';
import { findVisible, question_faults, question_params } from '../questions/index.js';
import {
  aboutComment,
  aboutPrediction,
  aboutQuestion,
  type CommentParts,
  postComment,
} from './posting.js';
import { growTrees } from './rules.js';
import {
  comment_body,
  comment_faults,
  comment_params,
  comments_page,
  comments_query,
  debates_page,
  discussions_page,
  discussions_query,
  list_query,
  posted_schema,
  prediction_path,
  replies_page,
  replies_path,
  reply_body,
} from './schema.js';
import {
  countFlat,
  countThreads,
  flatKey,
  listDebates,
  listDiscussions,
  listFlat,
  readComment,
  readPredictionRef,
  readThreads,
  type Scope,
  topKey,
} from './store.js';

const route = routeFor<Deps & CommentParts>();
const tag = 'comments';
const { QUESTION_NOT_FOUND } = question_faults;
const { PREDICTION_NOT_FOUND } = prediction_faults;
const { COMMENT_NOT_FOUND } = comment_faults;

const on_question = { params: question_params, absent: QUESTION_NOT_FOUND };
const on_prediction = { params: prediction_path, absent: PREDICTION_NOT_FOUND };
const on_comment = { params: comment_params, absent: COMMENT_NOT_FOUND };

const posting = {
  ...({ method: 'POST', tag, auth: 'linked', keeps: 'inside', limits: ['comments'] } as const),
  returns: { 201: posted_schema, 200: posted_schema },
};
const posting_faults = [
  comment_faults.COMMENT_TOO_SHORT,
  comment_faults.COMMENT_TOO_LONG,
  comment_faults.COMMENT_LOW_QUALITY,
  prediction_faults.CONTENT_REJECTED,
  points_faults.TIER_REQUIRED,
];

const createComment = route({
  ...posting,
  ...on_question,
  id: 'createComment',
  path: '/api/questions/{id}/comments',
  summary: 'Comment on a question, or with prediction_id reply to a prediction on it',
  body: comment_body,
  faults: [
    QUESTION_NOT_FOUND,
    PREDICTION_NOT_FOUND,
    ...posting_faults,
    comment_faults.COMMENT_LIMIT_REACHED,
  ],
  async handle(ctx, deps) {
    const { prediction_id } = ctx.body;
    const question_id = ctx.params.id.toLowerCase();
    const target = prediction_id
      ? await aboutPrediction(deps, question_id, prediction_id)
      : await aboutQuestion(deps, question_id);
    return postComment(deps, target, ctx);
  },
});

const replyToPrediction = route({
  ...posting,
  ...on_prediction,
  id: 'replyToPrediction',
  path: '/api/questions/{id}/predictions/{pid}/reply',
  summary: 'Reply to a prediction; needs the Analyst tier',
  body: reply_body,
  faults: [QUESTION_NOT_FOUND, PREDICTION_NOT_FOUND, ...posting_faults],
  async handle(ctx, deps) {
    const target = await aboutPrediction(deps, ctx.params.id.toLowerCase(), ctx.params.pid);
    return postComment(deps, target, ctx);
  },
});

const replyToComment = route({
  ...posting,
  ...on_comment,
  id: 'replyToComment',
  path: '/api/comments/{comment_id}/reply',
  summary: 'Reply to a comment; needs the Analyst tier. Below depth 8 replies stand side by side',
  body: reply_body,
  faults: [COMMENT_NOT_FOUND, ...posting_faults],
  async handle(ctx, deps) {
    return postComment(deps, await aboutComment(deps, ctx.params.comment_id), ctx);
  },
});

const reading = { method: 'GET', tag, auth: 'public', cacheable: true } as const;

interface FlatList {
  readonly scope: Scope;
  readonly path: string;
  /** The member that holds the comments. */
  readonly plural: 'comments' | 'replies';
  readonly query: Static<typeof comments_query>;
}

const replyFlat = async ({ sql }: Deps, list: FlatList): Promise<Answer> => {
  const { scope, path, plural, query } = list;
  const ask = readPage(query, ['id']);
  if (isFault(ask)) return ask;
  const [found, total] = await Promise.all([
    listFlat(sql, scope, query.sort ?? 'old', ask),
    countFlat(sql, scope),
  ]);
  const { rows, next_cursor } = makePage(found, ask.limit, flatKey);
  const headers = pageHeaders(path, { ...query }, next_cursor);
  return reply(200, { total, [plural]: rows, next_cursor }, headers);
};

const listComments = route({
  ...reading,
  ...on_question,
  id: 'listComments',
  path: '/api/questions/{id}/comments',
  summary: 'Comments and replies on a question, flat, oldest first; thread= for one thread of it',
  query: comments_query,
  returns: { 200: comments_page },
  faults: [QUESTION_NOT_FOUND, COMMENT_NOT_FOUND],
  async handle({ params, query, caller }, deps) {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const thread = query.thread?.toLowerCase();
    if (thread !== undefined && !isId(thread)) return refuse(COMMENT_NOT_FOUND);
    const scope = { question_id: question.id, thread };
    const path = `/api/questions/${question.id}/comments`;
    return replyFlat(deps, { scope, path, plural: 'comments', query });
  },
});

const replies = {
  ...reading,
  absent: PREDICTION_NOT_FOUND,
  query: list_query,
  returns: { 200: replies_page },
  faults: [PREDICTION_NOT_FOUND],
};

const listReplies = route({
  ...replies,
  id: 'listReplies',
  path: '/api/predictions/{pid}/replies',
  summary: 'Replies to a prediction and the threads below them, flat, oldest first',
  params: replies_path,
  async handle({ params: { pid }, query }, deps) {
    const prediction = await readPredictionRef(deps.sql, pid);
    if (prediction === undefined) return refuse(PREDICTION_NOT_FOUND);
    const path = `/api/predictions/${pid}/replies`;
    return replyFlat(deps, { scope: { prediction_id: pid }, path, plural: 'replies', query });
  },
});

const listQuestionReplies = route({
  ...replies,
  id: 'listQuestionReplies',
  path: '/api/questions/{id}/predictions/{pid}/replies',
  summary: 'The same as /api/predictions/{pid}/replies, of a prediction on this question',
  params: prediction_path,
  async handle({ params: { id, pid }, query }, deps) {
    const prediction = await readPredictionRef(deps.sql, pid);
    if (prediction?.question_id !== id.toLowerCase()) return refuse(PREDICTION_NOT_FOUND);
    const path = `/api/questions/${id}/predictions/${pid}/replies`;
    return replyFlat(deps, { scope: { prediction_id: pid }, path, plural: 'replies', query });
  },
});

const getComment = route({
  ...reading,
  ...on_comment,
  id: 'getComment',
  path: '/api/comments/{comment_id}',
  summary: 'One comment',
  returns: { 200: posted_schema },
  faults: [COMMENT_NOT_FOUND],
  async handle({ params }, { sql }) {
    const comment = await readComment(sql, params.comment_id);
    return comment === undefined ? refuse(COMMENT_NOT_FOUND) : reply(200, { comment });
  },
});

/** Comments of a thread at most in one tree; longer threads are read page by page. */
const shown_of_thread = 100;

const getDebates = route({
  ...reading,
  ...on_question,
  id: 'listDebates',
  path: '/api/questions/{id}/debates',
  summary: 'Threads with a reply as trees, most upvoted first',
  query: list_query,
  returns: { 200: debates_page },
  faults: [QUESTION_NOT_FOUND],
  async handle({ params, query, caller }, deps) {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const ask = readPage(query, ['number', 'id']);
    if (isFault(ask)) return ask;
    const { sql } = deps;
    const { id: question_id } = question;
    const [found, total] = await Promise.all([
      listDebates(sql, question_id, ask),
      countThreads(sql, { question_id, replied: true }),
    ]);
    const { rows: roots, next_cursor } = makePage(found, ask.limit, topKey);
    const ids = roots.map(({ id }) => id);
    const rows = await readThreads(sql, question_id, ids, shown_of_thread);
    const debates = growTrees(roots, rows).map((tree) => {
      return { ...tree, truncated: tree.comment_count > shown_of_thread };
    });
    const path = `/api/questions/${question_id}/debates`;
    return reply(200, { total, debates, next_cursor }, pageHeaders(path, query, next_cursor));
  },
});

const getDiscussions = route({
  ...reading,
  id: 'listDiscussions',
  path: '/api/discussions',
  summary: 'Threads on all questions: latest, most upvoted (top), or most upvoted with replies',
  query: discussions_query,
  returns: { 200: discussions_page },
  async handle({ query }, { sql }) {
    const tab = query.tab ?? 'latest';
    const ask = readPage(query, tab === 'latest' ? ['id'] : ['number', 'id']);
    if (isFault(ask)) return ask;
    const [found, total] = await Promise.all([
      listDiscussions(sql, tab, ask),
      countThreads(sql, { question_id: null, replied: tab === 'debates' }),
    ]);
    const page = makePage(found, ask.limit, tab === 'latest' ? flatKey : topKey);
    const { rows: discussions, next_cursor } = page;
    const headers = pageHeaders('/api/discussions', query, next_cursor);
    return reply(200, { tab, total, discussions, next_cursor }, headers);
  },
});

export const routes = [
  createComment,
  replyToPrediction,
  replyToComment,
  listComments,
  listReplies,
  listQuestionReplies,
  getComment,
  getDebates,
  getDiscussions,
];
