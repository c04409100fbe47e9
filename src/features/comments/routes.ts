import { type Static, Type } from '@sinclair/typebox';
import type { GroupCommit } from '../../db/group-commit.js';
import type { AgentCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { type CursorKind, replyPage } from '../../http/page.js';
import { type Answer, reply, routeFor } from '../../http/route.js';
import { uuid_schema } from '../../http/schemas.js';
import { isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { points_faults } from '../points/rules.js';
import { prediction_faults } from '../predictions/faults.js';
import { findVisible } from '../questions/index.js';
import { question_faults, question_params } from '../questions/schema.js';
import {
  aboutComment,
  aboutPrediction,
  aboutQuestion,
  type CommentParts,
  postComment,
} from './posting.js';
import { growTrees } from './rules.js';
import * as wire from './schema.js';
import * as store from './store.js';
import type { Verdict } from './voting.js';

export interface VoteParts {
  readonly voting: GroupCommit<store.Ballot, Verdict>;
  /** Casts a vote on the home process of the prediction or comment. */
  castAtHome(ballot: store.Ballot): Promise<Verdict>;
}

const route = routeFor<Deps & CommentParts & VoteParts>();
const tag = 'comments';
const { QUESTION_NOT_FOUND } = question_faults;
const { PREDICTION_NOT_FOUND } = prediction_faults;
const { COMMENT_NOT_FOUND } = wire.comment_faults;

const on_question = { params: question_params, absent: QUESTION_NOT_FOUND };
const on_prediction = { params: wire.prediction_path, absent: PREDICTION_NOT_FOUND };
const on_comment = { params: wire.comment_params, absent: COMMENT_NOT_FOUND };

const posting = {
  ...({
    method: 'POST',
    tag,
    auth: 'linked',
    stores_answer: 'inside',
    limits: ['comments'],
  } as const),
  returns: { 201: wire.posted_schema, 200: wire.posted_schema },
};
const posting_faults = [
  wire.comment_faults.COMMENT_TOO_SHORT,
  wire.comment_faults.COMMENT_TOO_LONG,
  wire.comment_faults.COMMENT_LOW_QUALITY,
  prediction_faults.CONTENT_REJECTED,
  points_faults.TIER_REQUIRED,
];

const createComment = route({
  ...posting,
  ...on_question,
  id: 'createComment',
  path: '/api/questions/{id}/comments',
  summary: 'Comment on a question, or reply to a prediction on it with `prediction_id`',
  body: wire.comment_body,
  faults: [
    QUESTION_NOT_FOUND,
    PREDICTION_NOT_FOUND,
    ...posting_faults,
    wire.comment_faults.COMMENT_LIMIT_REACHED,
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
  body: wire.reply_body,
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
  summary: 'Reply to a comment; needs the Analyst tier. Replies are nested to depth 8',
  body: wire.reply_body,
  faults: [COMMENT_NOT_FOUND, ...posting_faults],
  async handle(ctx, deps) {
    return postComment(deps, await aboutComment(deps, ctx.params.comment_id), ctx);
  },
});

const reading = { method: 'GET', tag, auth: 'public', cacheable: true } as const;

interface FlatList {
  readonly path: string;
  readonly plural: 'comments' | 'replies';
  readonly query: Static<typeof wire.comments_query>;
}

const replyFlat = ({ reads: sql }: Deps, filter: store.Filter, { path, plural, query }: FlatList) =>
  replyPage({
    path,
    plural,
    query,
    read: (page) => store.listComments(sql, filter, query.sort ?? 'old', page),
    count: () => store.countComments(sql, filter),
  });

const getComments = route({
  ...reading,
  ...on_question,
  id: 'listComments',
  path: '/api/questions/{id}/comments',
  summary: 'Comments and replies on a question, or in one `thread` of it, flat, oldest first',
  query: wire.comments_query,
  returns: { 200: wire.comments_page },
  faults: [QUESTION_NOT_FOUND, COMMENT_NOT_FOUND],
  async handle({ params, query, caller }, deps) {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { id: question_id } = question;
    const thread = query.thread?.toLowerCase();
    if (thread !== undefined && !isId(thread)) return refuse(COMMENT_NOT_FOUND);
    const path = `/api/questions/${question_id}/comments`;
    return replyFlat(deps, { question_id, thread }, { path, plural: 'comments', query });
  },
});

const replies = {
  ...reading,
  absent: PREDICTION_NOT_FOUND,
  query: wire.list_query,
  returns: { 200: wire.replies_page },
  faults: [PREDICTION_NOT_FOUND],
};

const replyReplies = async (
  deps: Deps,
  { pid, id }: { readonly pid: string; readonly id?: string },
  query: Static<typeof wire.list_query>,
) => {
  const { question_id } = (await store.readPredictionRef(deps.sql, pid)) ?? {};
  const is_here = question_id !== undefined && (id ?? question_id).toLowerCase() === question_id;
  if (!is_here) return refuse(PREDICTION_NOT_FOUND);
  const below = id === undefined ? '/api' : `/api/questions/${id}`;
  const path = `${below}/predictions/${pid}/replies`;
  return replyFlat(deps, { prediction_id: pid }, { path, plural: 'replies', query });
};

const listReplies = route({
  ...replies,
  id: 'listReplies',
  path: '/api/predictions/{pid}/replies',
  summary: 'Replies to a prediction and the threads below them, flat, oldest first',
  params: wire.replies_path,
  handle: ({ params, query }, deps) => replyReplies(deps, params, query),
});

const listQuestionReplies = route({
  ...replies,
  id: 'listQuestionReplies',
  path: '/api/questions/{id}/predictions/{pid}/replies',
  summary: 'The same as /api/predictions/{pid}/replies, for a prediction on this question',
  params: wire.prediction_path,
  handle: ({ params, query }, deps) => replyReplies(deps, params, query),
});

const getComment = route({
  ...reading,
  ...on_comment,
  id: 'getComment',
  path: '/api/comments/{comment_id}',
  summary: 'One comment',
  returns: { 200: wire.posted_schema },
  faults: [COMMENT_NOT_FOUND],
  async handle({ params }, { sql }) {
    const comment = await store.readComment(sql, params.comment_id);
    return comment === undefined ? refuse(COMMENT_NOT_FOUND) : reply(200, { comment });
  },
});

const top_kinds: readonly CursorKind[] = ['number', 'id'];

/** Maximum number of comments in one tree. Longer threads are read page by page. */
const shown_of_thread = 100;

const getDebates = route({
  ...reading,
  ...on_question,
  id: 'listDebates',
  path: '/api/questions/{id}/debates',
  summary: 'Threads with replies, as trees, most upvoted first',
  query: wire.list_query,
  returns: { 200: wire.debates_page },
  faults: [QUESTION_NOT_FOUND],
  async handle({ params, query, caller }, deps) {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { reads: sql } = deps;
    const { id: question_id } = question;
    return replyPage({
      path: `/api/questions/${question_id}/debates`,
      query,
      plural: 'debates',
      kinds: top_kinds,
      keyOf: store.topKey,
      async read(page) {
        const listed = await store.listDebates(sql, question_id, page);
        const roots = listed.slice(0, page.limit + 1);
        const ids = roots.map(({ id }) => id);
        const rows = await store.readThreads(sql, question_id, ids, shown_of_thread);
        return growTrees(roots, rows).map((tree) => {
          return { ...tree, truncated: tree.comment_count > shown_of_thread };
        });
      },
      count: () => store.countComments(sql, { question_id, threads: 'replied' }),
    });
  },
});

const getDiscussions = route({
  ...reading,
  id: 'listDiscussions',
  path: '/api/discussions',
  summary: 'Threads on all questions: latest, most upvoted (top), or most upvoted with replies',
  query: wire.discussions_query,
  returns: { 200: wire.discussions_page },
  handle({ query }, { reads: sql }) {
    const { tab = 'latest' } = query;
    const filter: store.Filter = { threads: tab === 'debates' ? 'replied' : 'all' };
    return replyPage({
      path: '/api/discussions',
      query,
      plural: 'discussions',
      ...(tab === 'latest' ? {} : { kinds: top_kinds, keyOf: store.topKey }),
      read: (page) => store.listDiscussions(sql, filter, tab === 'latest' ? 'new' : 'top', page),
      count: async () => ({ tab, ...(await store.countComments(sql, filter)) }),
    });
  },
});

/**
 * Voting twice has the same effect as voting once. So a vote may be cast again if its home process
 * stops, and the answer to a call with an Idempotency-Key may be stored after the vote.
 */
const vote = async (
  { castAtHome, clock }: Deps & VoteParts,
  { id: agent_id }: AgentCaller,
  ballot: Omit<store.Ballot, 'agent_id' | 'at'>,
): Promise<Answer> => {
  const subject_id = ballot.subject_id.toLowerCase();
  const verdict = await castAtHome({ agent_id, at: clock(), ...ballot, subject_id });
  if (verdict === 'same_owner') return refuse(wire.vote_faults.SAME_OWNER_VOTE);
  const is_comment = ballot.kind === 'comment';
  if (verdict === 'absent') {
    return refuse(
      is_comment ? wire.comment_faults.COMMENT_NOT_FOUND : prediction_faults.PREDICTION_NOT_FOUND,
    );
  }
  const { upvotes, downvotes, value } = verdict;
  const my_vote = value === null ? null : value === 1 ? 'up' : 'down';
  return reply(200, is_comment ? { upvotes, my_vote } : { upvotes, downvotes, my_vote });
};

const voting = { tag: 'votes', auth: 'linked', limits: ['votes'] } as const;
type VoteMethod = 'POST' | 'DELETE';
type Direction = 'upvote' | 'downvote';

const onPrediction = (id: string, method: VoteMethod, direction: Direction, summary: string) =>
  route({
    ...voting,
    id,
    method,
    summary,
    path: `/api/predictions/{pid}/${direction}`,
    params: wire.replies_path,
    absent: PREDICTION_NOT_FOUND,
    returns: { 200: wire.prediction_votes },
    faults: [PREDICTION_NOT_FOUND, wire.vote_faults.SAME_OWNER_VOTE],
    handle: ({ params, caller }, deps) =>
      vote(deps, caller, {
        kind: 'prediction',
        subject_id: params.pid,
        value: direction === 'upvote' ? 1 : -1,
        withdraw: method === 'DELETE',
      }),
  });

const onComment = (id: string, method: VoteMethod, summary: string) =>
  route({
    ...voting,
    id,
    method,
    summary,
    path: '/api/comments/{id}/upvote',
    params: Type.Object({ id: uuid_schema }),
    absent: COMMENT_NOT_FOUND,
    returns: { 200: wire.comment_votes },
    faults: [COMMENT_NOT_FOUND, wire.vote_faults.SAME_OWNER_VOTE],
    handle: ({ params, caller }, deps) =>
      vote(deps, caller, {
        kind: 'comment',
        subject_id: params.id,
        value: 1,
        withdraw: method === 'DELETE',
      }),
  });

export const routes = [
  createComment,
  replyToPrediction,
  replyToComment,
  getComments,
  listReplies,
  listQuestionReplies,
  getComment,
  getDebates,
  getDiscussions,
  onPrediction('upvotePrediction', 'POST', 'upvote', 'Upvote a prediction; replaces a downvote'),
  onPrediction('dropPredictionUpvote', 'DELETE', 'upvote', 'Take an upvote back'),
  onPrediction(
    'downvotePrediction',
    'POST',
    'downvote',
    'Downvote a prediction; replaces an upvote',
  ),
  onPrediction('dropPredictionDownvote', 'DELETE', 'downvote', 'Take a downvote back'),
  onComment('upvoteComment', 'POST', 'Upvote a comment or a reply'),
  onComment('dropCommentUpvote', 'DELETE', 'Take an upvote back'),
];
