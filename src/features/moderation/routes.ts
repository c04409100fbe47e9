import { Type } from '@sinclair/typebox';
import { isFault } from '../../kit/fault.js';
import { nullable, uuid_schema } from '../../kit/http/openapi.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import { type AgentDeps, agents_faults } from '../agents/index.js';
import { comment_faults, setCommentHidden } from '../comments/index.js';
import { prediction_faults, setPredictionHidden } from '../predictions/index.js';
import type { QuestionParts } from '../questions/index.js';
import { actOnAgent, actOnContent, type Content } from './acts.js';
import {
  act_body,
  hidden_content_schema,
  hidden_query,
  hidden_schema,
  suspension_schema,
} from './schema.js';
import { countHidden, type HiddenContent, listHidden } from './store.js';

const route = routeFor<AgentDeps & QuestionParts>();
const tag = 'moderation';

const predictions: Content = {
  kind: 'prediction',
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  setHidden: setPredictionHidden,
};

const comments: Content = {
  kind: 'comment',
  absent: comment_faults.COMMENT_NOT_FOUND,
  setHidden: setCommentHidden,
};

const on_prediction = {
  ...({ method: 'POST', tag, auth: 'admin', keeps: 'inside', body: act_body } as const),
  params: Type.Object({ pid: uuid_schema }),
  absent: predictions.absent,
  returns: { 200: hidden_schema },
  faults: [predictions.absent],
};

const hidePrediction = route({
  ...on_prediction,
  id: 'hidePrediction',
  path: '/api/admin/predictions/{pid}/hide',
  summary: 'Hide the text of a prediction and take it out of lists; the forecast counts on',
  handle: (ctx, deps) =>
    actOnContent(ctx, deps, { content: predictions, id: ctx.params.pid, hide: true }),
});

const restorePrediction = route({
  ...on_prediction,
  id: 'restorePrediction',
  path: '/api/admin/predictions/{pid}/restore',
  summary: 'Show a hidden prediction again',
  handle: (ctx, deps) =>
    actOnContent(ctx, deps, { content: predictions, id: ctx.params.pid, hide: false }),
});

const on_comment = {
  ...({ method: 'POST', tag, auth: 'admin', keeps: 'inside', body: act_body } as const),
  params: Type.Object({ id: uuid_schema }),
  absent: comments.absent,
  returns: { 200: hidden_schema },
  faults: [comments.absent],
};

const hideComment = route({
  ...on_comment,
  id: 'hideComment',
  path: '/api/admin/comments/{id}/hide',
  summary: 'Hide a comment: it leaves lists, counters and the board of debaters',
  handle: (ctx, deps) =>
    actOnContent(ctx, deps, { content: comments, id: ctx.params.id, hide: true }),
});

const restoreComment = route({
  ...on_comment,
  id: 'restoreComment',
  path: '/api/admin/comments/{id}/restore',
  summary: 'Show a hidden comment again',
  handle: (ctx, deps) =>
    actOnContent(ctx, deps, { content: comments, id: ctx.params.id, hide: false }),
});

const hiddenWire = (row: HiddenContent) => ({
  ...row,
  created_at: row.created_at.toISOString(),
  hidden_at: row.hidden_at.toISOString(),
});

const listHiddenContent = route({
  id: 'listHidden',
  method: 'GET',
  path: '/api/admin/hidden',
  summary: 'Predictions and comments that are hidden, with their texts, newest first',
  tag,
  auth: 'admin',
  query: hidden_query,
  returns: {
    200: Type.Object({
      total: Type.Integer(),
      hidden: Type.Array(hidden_content_schema),
      next_cursor: nullable(Type.String()),
    }),
  },
  handle: async ({ query }, { sql }) => {
    const ask = readPage(query, ['id']);
    if (isFault(ask)) return ask;
    const [rows, total] = await Promise.all([
      listHidden(sql, query.kind, ask),
      countHidden(sql, query.kind),
    ]);
    const page = makePage(rows, ask.limit, (row) => [row.id]);
    const { next_cursor } = page;
    return reply(
      200,
      { total, hidden: page.rows.map(hiddenWire), next_cursor },
      pageHeaders('/api/admin/hidden', query, next_cursor),
    );
  },
});

const absent = agents_faults.AGENT_NOT_FOUND;
const on_agent = {
  ...({ method: 'POST', tag, auth: 'admin', keeps: 'inside', body: act_body, absent } as const),
  params: Type.Object({ id: uuid_schema }),
  returns: { 200: suspension_schema },
  faults: [absent],
};

const suspendAgent = route({
  ...on_agent,
  id: 'suspendAgent',
  path: '/api/admin/agents/{id}/suspend',
  summary: 'Suspend an agent: its key stops within a second',
  handle: (ctx, deps) => actOnAgent(ctx, deps, { id: ctx.params.id, suspend: true, absent }),
});

const restoreAgent = route({
  ...on_agent,
  id: 'restoreAgent',
  path: '/api/admin/agents/{id}/restore',
  summary: 'End the suspension of an agent',
  handle: (ctx, deps) => actOnAgent(ctx, deps, { id: ctx.params.id, suspend: false, absent }),
});

export const routes = [
  listHiddenContent,
  hidePrediction,
  restorePrediction,
  hideComment,
  restoreComment,
  suspendAgent,
  restoreAgent,
];
