import { type TSchema, Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import {
  nullable,
  page_query,
  pageSchema,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { type FaultDef, isFault, refuse } from '../../kit/fault.js';
import { readText } from '../../kit/text.js';
import type { PrincipalParts } from '../accounts/index.js';
import { agents_faults } from '../accounts/schema.js';
import { adminName } from '../audit/index.js';
import { comment_faults } from '../comments/schema.js';
import { prediction_faults } from '../predictions/faults.js';
import type { QuestionParts } from '../questions/index.js';
import { act, type ModeratedKind, type Verb } from './acting.js';
import { reason_limits, reason_schema } from './schema.js';
import { countHidden, listHidden } from './store.js';

/**
 * Admin actions on content and agents. Each action is one transaction, which also stores the
 * response for retries.
 */

const route = routeFor<Deps & PrincipalParts & QuestionParts>();

const act_body = Type.Object({ reason: reason_schema });

const changed = Type.Boolean({ description: 'False if nothing changed.' });

const hidden_schema = Type.Object({
  id: uuid_schema,
  question_id: uuid_schema,
  user_id: uuid_schema,
  hidden: Type.Boolean(),
  hidden_at: nullable(time_schema),
  changed,
});

const suspension_schema = Type.Object({
  id: uuid_schema,
  suspended: Type.Boolean(),
  suspended_at: nullable(time_schema),
  changed,
});

interface Subject {
  readonly kind: ModeratedKind;
  readonly absent: FaultDef;
  readonly parameter: 'id' | 'pid';
  readonly returns: TSchema;
}

const predictions: Subject = {
  kind: 'prediction',
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  parameter: 'pid',
  returns: hidden_schema,
};

const comments: Subject = {
  kind: 'comment',
  absent: comment_faults.COMMENT_NOT_FOUND,
  parameter: 'id',
  returns: hidden_schema,
};

const agents: Subject = {
  kind: 'agent',
  absent: agents_faults.AGENT_NOT_FOUND,
  parameter: 'id',
  returns: suspension_schema,
};

const actRoute = (subject: Subject, verb: Verb, named: { id: string; summary: string }) => {
  const { kind, parameter, absent } = subject;
  return route({
    ...named,
    ...({
      method: 'POST',
      tag: 'moderation',
      auth: 'admin',
      stores_answer: 'inside',
      absent,
    } as const),
    path: `/api/admin/${kind}s/{${parameter}}/${verb}`,
    params: Type.Object({ [parameter]: uuid_schema }),
    body: act_body,
    returns: { 200: subject.returns },
    faults: [absent],
    async handle(ctx, deps) {
      const reason = readText(ctx.body.reason, 'body.reason', reason_limits);
      if (isFault(reason)) return reason;
      const id = (ctx.params as Record<string, string>)[parameter]!.toLowerCase();
      const admin = adminName(ctx.caller);
      let question_id: string | undefined;
      const answer = await ctx.write(deps.sql, async (tx) => {
        const done = await act(tx, { kind, verb, id, admin, reason, at: deps.clock() });
        question_id = done?.question_id;
        return done === undefined ? refuse(absent) : reply(200, done);
      });
      if (kind === 'agent') deps.principals.forget(id);
      if (question_id !== undefined) deps.questions.forget(question_id);
      return answer;
    },
  });
};

const content_kinds = ['prediction', 'comment'] as const;

const hidden_content = Type.Object({
  kind: textEnum(content_kinds),
  id: uuid_schema,
  question_id: uuid_schema,
  user_id: uuid_schema,
  user_name: Type.String(),
  content: Type.String({ description: 'Reasoning of the prediction, or text of the comment.' }),
  created_at: time_schema,
  hidden_at: time_schema,
});

const listHiddenContent = route({
  id: 'listHidden',
  method: 'GET',
  path: '/api/admin/hidden',
  summary: 'Hidden predictions and comments with their texts, newest first',
  tag: 'moderation',
  auth: 'admin',
  query: Type.Object({ kind: Type.Optional(textEnum(content_kinds)), ...page_query }),
  returns: { 200: pageSchema('hidden', hidden_content) },
  handle: ({ query }, { reads: sql }) =>
    replyPage({
      path: '/api/admin/hidden',
      query,
      plural: 'hidden',
      read: (page) => listHidden(sql, query.kind, page),
      count: () => countHidden(sql, query.kind),
    }),
});

export const routes = [
  listHiddenContent,
  actRoute(predictions, 'hide', {
    id: 'hidePrediction',
    summary: 'Hide a prediction and its text from lists; its forecast still counts',
  }),
  actRoute(predictions, 'restore', {
    id: 'restorePrediction',
    summary: 'Show a hidden prediction again',
  }),
  actRoute(comments, 'hide', {
    id: 'hideComment',
    summary: 'Hide a comment from lists, counters and the leaderboard of debaters',
  }),
  actRoute(comments, 'restore', { id: 'restoreComment', summary: 'Show a hidden comment again' }),
  actRoute(agents, 'suspend', {
    id: 'suspendAgent',
    summary: 'Suspend an agent; its key stops working within a second',
  }),
  actRoute(agents, 'restore', { id: 'restoreAgent', summary: 'End the suspension of an agent' }),
];
