import { type TSchema, Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import { emit } from '../../db/event.js';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import {
  nullable,
  page_query,
  pageSchema,
  textEnum,
  textSchema,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import type { EventDef } from '../../kit/event.js';
import { type FaultDef, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { readText } from '../../kit/text.js';
import { type PrincipalParts, setSuspended } from '../accounts/index.js';
import { agents_faults } from '../accounts/schema.js';
import { adminName, type RecordedAct, recordAct } from '../audit/index.js';
import type { Act } from '../audit/schema.js';
import { setCommentHidden } from '../comments/index.js';
import { comment_faults } from '../comments/schema.js';
import {
  comment_hidden,
  comment_restored,
  prediction_hidden,
  prediction_restored,
} from '../events/catalogue.js';
import { markDebaters, markStanding } from '../leaderboards/index.js';
import { notify } from '../notifications/index.js';
import { prediction_faults } from '../predictions/faults.js';
import { type Hidden, setPredictionHidden } from '../predictions/index.js';
import type { QuestionParts } from '../questions/index.js';
import { countHidden, listHidden } from './store.js';

/**
 * Admin actions on content and agents. Each action is one transaction: the change, its line in the
 * audit log, the consequences, and the response that is stored for retries. An action that changes
 * nothing writes no line.
 */

const route = routeFor<Deps & PrincipalParts & QuestionParts>();

/** Length of the reason for an action, in characters after trimming. */
const reason_limits = { min: 3, max: 2_000 } as const;

/** The schema counts UTF-16 units before trimming. `reason_limits` are checked after trimming. */
const act_body = Type.Object({
  reason: textSchema({ minLength: reason_limits.min, maxLength: reason_limits.max }),
});

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

interface ActCall {
  readonly id: string;
  readonly reason: string;
  readonly at: Date;
  /** Time from which the subject is hidden or suspended. Null to restore it. */
  readonly since: Date | null;
  record(more: Partial<RecordedAct>): Promise<void>;
}

interface Subject {
  readonly kind: 'prediction' | 'comment' | 'agent';
  readonly absent: FaultDef;
  readonly parameter: 'id' | 'pid';
  readonly returns: TSchema;
  /** Performs the action. Returns the response body, or undefined if no subject has this id. */
  work(
    tx: Tx,
    call: ActCall,
  ): Promise<{ readonly changed: boolean; readonly question_id?: string } | undefined>;
}

/** Hides content or shows it again, and notifies its author. */
const contentOf = (
  content: Pick<Subject, 'kind' | 'absent' | 'parameter'> & {
    readonly hidden: EventDef;
    readonly restored: EventDef;
  },
  setHidden: (tx: Tx, id: string, at: Date | null) => Promise<Hidden | undefined>,
): Subject => ({
  kind: content.kind,
  absent: content.absent,
  parameter: content.parameter,
  returns: hidden_schema,
  async work(tx, { id, reason, at, since, record }) {
    const row = await setHidden(tx, id, since);
    if (row === undefined) return undefined;
    const { question_id, agent_id: user_id, hidden_at, changed } = row;
    if (changed) {
      await record({ question_id, details: { user_id } });
      await emit(tx, since === null ? content.restored : content.hidden, {
        at,
        scope: { question_id, agent_id: user_id },
        data: { question_id, [`${content.kind}_id`]: row.id, user_id },
      });
      await notify(tx, [
        {
          agent_id: user_id,
          kind: since === null ? 'content.restored' : 'content.hidden',
          cause: `moderation:${makeId()}`,
          question_id,
          subject_id: row.id,
          at,
          details: { content_kind: content.kind, reason },
        },
      ]);
    }
    return { id: row.id, question_id, user_id, hidden: hidden_at !== null, hidden_at, changed };
  },
});

const predictions = contentOf(
  {
    kind: 'prediction',
    absent: prediction_faults.PREDICTION_NOT_FOUND,
    parameter: 'pid',
    hidden: prediction_hidden,
    restored: prediction_restored,
  },
  setPredictionHidden,
);

const comments = contentOf(
  {
    kind: 'comment',
    absent: comment_faults.COMMENT_NOT_FOUND,
    parameter: 'id',
    hidden: comment_hidden,
    restored: comment_restored,
  },
  setCommentHidden,
);

const agents: Subject = {
  kind: 'agent',
  absent: agents_faults.AGENT_NOT_FOUND,
  parameter: 'id',
  returns: suspension_schema,
  async work(tx, { id, since, record }) {
    const row = await setSuspended(tx, id, since);
    if (row === undefined) return undefined;
    if (row.changed) {
      await record({});
      await markStanding(tx, [row.id]);
      await markDebaters(tx, [row.id]);
    }
    return { ...row, suspended: row.suspended_at !== null };
  },
};

type Verb = 'hide' | 'suspend' | 'restore';

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
    async handle(ctx, { sql, clock, questions, principals }) {
      const reason = readText(ctx.body.reason, 'body.reason', reason_limits);
      if (isFault(reason)) return reason;
      const id = (ctx.params as Record<string, string>)[parameter]!.toLowerCase();
      const admin = adminName(ctx.caller);
      let question_id: string | undefined;
      const answer = await ctx.write(sql, async (tx) => {
        const at = clock();
        const line = { admin, act: `${kind}.${verb}` as Act, subject: { kind, id }, reason, at };
        const record = (more: Partial<RecordedAct>) => recordAct(tx, { ...line, ...more });
        const since = verb === 'restore' ? null : at;
        const done = await subject.work(tx, { id, reason, at, since, record });
        question_id = done?.question_id;
        return done === undefined ? refuse(absent) : reply(200, done);
      });
      if (kind === 'agent') principals.forget(id);
      if (question_id !== undefined) questions.forget(question_id);
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
