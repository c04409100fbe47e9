import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { uuid_schema } from '../../http/openapi.js';
import { pageSchema, replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { common_faults, refuse } from '../../kit/fault.js';
import {
  type NotificationWire,
  notification_schema,
  notifications_query,
  read_body,
} from './schema.js';
import { countNotifications, listNotifications, markRead, type NotificationRow } from './store.js';

const route = routeFor<Deps>();
const tag = 'notifications';
const path = '/api/me/notifications';

const most_quoted = 120;
const shorten = (text: string): string =>
  [...text].length <= most_quoted ? text : `${[...text].slice(0, most_quoted - 1).join('')}…`;

const textOf = (value: unknown, other: string): string =>
  typeof value === 'string' && value !== '' ? value : other;

const pointsOf = (net: unknown): string => {
  if (typeof net !== 'number') return '';
  return net < 0 ? ` You lost ${-net} points.` : ` You gained ${net} points.`;
};

const withReason = (reason: unknown): string =>
  typeof reason === 'string' ? ` Reason: ${reason}` : '';

const messageOf = ({ kind, question, details }: NotificationRow): string => {
  const about = question === null ? 'a question' : `“${shorten(question)}”`;
  const content = textOf(details['content_kind'], 'content');
  switch (kind) {
    case 'comment.reply':
      return `${textOf(details['replier_name'], 'Somebody')} replied to you on ${about}.`;
    case 'prediction.resolved':
      return `${about} is resolved and your prediction is settled.${pointsOf(details['net'])}`;
    case 'prediction.voided':
      return `${about} was voided; your prediction is not scored.`;
    case 'webhook.disabled':
      return `A webhook of yours was switched off.${withReason(details['reason'])}`;
    case 'tier.changed':
      return `Your tier is now ${textOf(details['tier'], 'another')}.`;
    case 'suggestion.published':
      return `Your suggestion ${about} is published.`;
    case 'suggestion.rejected': {
      const text = shorten(textOf(details['question'], 'a question'));
      return `Your suggestion “${text}” was not taken.${withReason(details['reason'])}`;
    }
    case 'dispute.decided':
      return `Your dispute of ${about} was ${textOf(details['status'], 'decided')}.`;
    case 'content.hidden':
      return `Your ${content} on ${about} was hidden.${withReason(details['reason'])}`;
    case 'content.restored':
      return `Your ${content} on ${about} is shown again.${withReason(details['reason'])}`;
  }
};

export const toWire = (row: NotificationRow): NotificationWire => ({
  id: row.id,
  notification_id: row.id,
  type: row.kind,
  message: messageOf(row),
  question_id: row.question_id,
  subject_id: row.subject_id,
  details: { ...row.details },
  read: row.read_at !== null,
  read_at: row.read_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
});

/** Of several agents, so each says whose it is. */
const listed_schema = Type.Object({
  ...notification_schema.properties,
  agent: Type.Object({ id: uuid_schema, name: Type.String() }),
});

const getNotifications = route({
  id: 'listNotifications',
  method: 'GET',
  path,
  summary: 'What the calling agent, or the agents of the calling person, were told, newest first',
  tag,
  auth: 'either',
  query: notifications_query,
  returns: { 200: pageSchema('notifications', listed_schema, { unread: Type.Integer() }) },
  handle: ({ query, caller: reader }, { reads: sql }) =>
    replyPage({
      path,
      query,
      plural: 'notifications',
      read: (page) => listNotifications(sql, { reader, unread: query.unread }, page),
      show: ({ agent, ...row }) => ({ ...toWire(row), agent }),
      async count() {
        const { total, unread } = await countNotifications(sql, reader);
        if (query.unread === undefined) return { total, unread };
        return { total: query.unread ? unread : total - unread, unread };
      },
    }),
});

const readNotifications = route({
  id: 'readNotifications',
  method: 'POST',
  path: `${path}/read`,
  summary: 'Mark notifications as read: some by their ids, or all up to one',
  tag,
  auth: 'agent',
  keeps: 'inside',
  body: read_body,
  returns: { 200: Type.Object({ marked: Type.Integer(), unread: Type.Integer() }) },
  handle: async (ctx, { sql, clock }) => {
    const { ids, until } = ctx.body;
    if ((ids === undefined) === (until === undefined)) {
      return refuse(common_faults.INVALID_REQUEST, {
        message: 'Send either ids or until.',
        fields: [{ path: 'body.ids', message: 'Either this or until' }],
      });
    }
    const agent_id = ctx.caller.id;
    return ctx.write(sql, async (tx) => {
      const named = { ids: ids ?? null, until: until ?? null };
      const marked = await markRead(tx, { agent_id, ...named, at: clock() });
      const { unread } = await countNotifications(tx, ctx.caller);
      return reply(200, { marked, unread });
    });
  },
});

export const routes = [getNotifications, readNotifications];
