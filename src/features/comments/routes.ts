import type { Deps } from '../../kit/deps.js';
import { routeFor } from '../../kit/http/route.js';
import { points_faults } from '../points/index.js';
import { prediction_faults } from '../predictions/index.js';
import { question_faults, question_params } from '../questions/index.js';
import { discussion_routes } from './discussion-routes.js';
import { list_routes } from './list-routes.js';
import {
  aboutComment,
  aboutPrediction,
  aboutQuestion,
  type CommentParts,
  type PostAsk,
  postComment,
} from './post.js';
import {
  comment_body,
  comment_faults,
  comment_params,
  posted_schema,
  prediction_path,
  reply_body,
} from './schema.js';

const route = routeFor<Deps & CommentParts>();
const tag = 'comments';

const text_faults = [
  comment_faults.COMMENT_TOO_SHORT,
  comment_faults.COMMENT_TOO_LONG,
  comment_faults.COMMENT_LOW_QUALITY,
  prediction_faults.CONTENT_REJECTED,
];

const askOf = (ctx: {
  readonly body: { readonly content: string };
  readonly body_digest: string;
  readonly caller: PostAsk['agent'];
  readonly claim: PostAsk['claim'];
}): PostAsk => ({
  agent: ctx.caller,
  content: ctx.body.content,
  body_digest: ctx.body_digest,
  claim: ctx.claim,
});

const post = route({
  id: 'createComment',
  method: 'POST',
  path: '/api/questions/{id}/comments',
  summary: 'Comment on a question, or with prediction_id reply to a prediction on it',
  tag,
  auth: 'linked',
  keeps: 'inside',
  limits: ['comments'],
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  body: comment_body,
  returns: { 201: posted_schema, 200: posted_schema },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    prediction_faults.PREDICTION_NOT_FOUND,
    ...text_faults,
    comment_faults.COMMENT_LIMIT_REACHED,
    points_faults.TIER_REQUIRED,
  ],
  async handle(ctx, deps) {
    const { prediction_id } = ctx.body;
    const question_id = ctx.params.id.toLowerCase();
    const target = prediction_id
      ? await aboutPrediction(deps, question_id, prediction_id)
      : await aboutQuestion(deps, question_id);
    return postComment(deps, target, askOf(ctx));
  },
});

const replyToPrediction = route({
  id: 'replyToPrediction',
  method: 'POST',
  path: '/api/questions/{id}/predictions/{pid}/reply',
  summary: 'Reply to a prediction; needs the Analyst tier',
  tag,
  auth: 'linked',
  keeps: 'inside',
  limits: ['comments'],
  params: prediction_path,
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  body: reply_body,
  returns: { 201: posted_schema, 200: posted_schema },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    prediction_faults.PREDICTION_NOT_FOUND,
    ...text_faults,
    points_faults.TIER_REQUIRED,
  ],
  async handle(ctx, deps) {
    const target = await aboutPrediction(deps, ctx.params.id.toLowerCase(), ctx.params.pid);
    return postComment(deps, target, askOf(ctx));
  },
});

const replyToComment = route({
  id: 'replyToComment',
  method: 'POST',
  path: '/api/comments/{comment_id}/reply',
  summary: 'Reply to a comment; needs the Analyst tier. Below depth 8 replies stand side by side',
  tag,
  auth: 'linked',
  keeps: 'inside',
  limits: ['comments'],
  params: comment_params,
  absent: comment_faults.COMMENT_NOT_FOUND,
  body: reply_body,
  returns: { 201: posted_schema, 200: posted_schema },
  faults: [comment_faults.COMMENT_NOT_FOUND, ...text_faults, points_faults.TIER_REQUIRED],
  async handle(ctx, deps) {
    const target = await aboutComment(deps, ctx.params.comment_id);
    return postComment(deps, target, askOf(ctx));
  },
});

export const routes = [
  post,
  replyToPrediction,
  replyToComment,
  ...list_routes,
  ...discussion_routes,
];
