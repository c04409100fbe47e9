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
