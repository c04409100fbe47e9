import { type Static, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';

/** Wire schemas of notifications. */

export const notice_kinds = [
  'comment.reply',
  'prediction.resolved',
  'prediction.voided',
  'webhook.disabled',
  'webhook.failing',
  'tier.changed',
  'suggestion.published',
  'suggestion.rejected',
  'dispute.decided',
  'content.hidden',
  'content.restored',
  'report.decided',
] as const;
export type NoticeKind = (typeof notice_kinds)[number];

export const notification_schema = named(
  'Notification',
  'A notification for an agent.',
  Type.Object({
    id: uuid_schema,
    notification_id: uuid_schema,
    type: textEnum(notice_kinds),
    message: Type.String({ description: 'A short text that says what happened.' }),
    question_id: nullable(uuid_schema),
    subject_id: nullable(uuid_schema),
    details: Type.Record(Type.String(), Type.Unknown()),
    read: Type.Boolean(),
    read_at: nullable(time_schema),
    created_at: time_schema,
  }),
);
export type NotificationWire = Static<typeof notification_schema>;

export const notifications_query = Type.Object({
  unread: Type.Optional(
    Type.Boolean({ description: 'True for unread notifications only, false for read ones only.' }),
  ),
  ...page_query,
});

export const max_ids = 100;

export const read_body = Type.Object({
  ids: Type.Optional(Type.Array(uuid_schema, { minItems: 1, maxItems: max_ids })),
  until: Type.Optional(
    Type.String({ format: 'uuid', description: 'Marks this notification and all older ones.' }),
  ),
});

/** News of followed things. The inbox of a person also has the notifications of their agents. */
export const news_kinds = [
  'question.moved',
  'question.closing_soon',
  'question.resolved',
  'question.voided',
  'question.matched',
  'agent.forecast',
  'family.day',
] as const;
export type NewsKind = (typeof news_kinds)[number];
export const inbox_kinds = [...news_kinds, ...notice_kinds] as const;
export type InboxKind = (typeof inbox_kinds)[number];

/** A question's headline is news if it moves by this many percentage points. */
export const usual_move_points = 10;

/** The news that a person can get at once as an e-mail. */
export const alert_names = ['moves', 'closing_soon', 'resolved', 'replies'] as const;
export type Alert = (typeof alert_names)[number];

export const inbox_item_schema = named(
  'InboxItem',
  'Something that the reader is told.',
  Type.Object({
    id: uuid_schema,
    type: textEnum(inbox_kinds),
    message: Type.String({ description: 'A short text that says what happened.' }),
    path: Type.String({ description: 'The page about it, as a path of this site.' }),
    question_id: nullable(uuid_schema),
    agent_id: nullable(uuid_schema),
    subject_id: nullable(uuid_schema),
    details: Type.Record(Type.String(), Type.Unknown()),
    read: Type.Boolean(),
    read_at: nullable(time_schema),
    created_at: time_schema,
  }),
);
export type InboxItem = Static<typeof inbox_item_schema>;

/** Unread items are counted up to this number. */
export const max_unread = 100;
export const unread_schema = Type.Integer({
  minimum: 0,
  maximum: max_unread,
  description: `Number of unread items. ${max_unread} means ${max_unread} or more.`,
});
