import { Type } from '@sinclair/typebox';
import { nullable, textEnum, time_schema, uuid_schema } from '../../kit/http/openapi.js';
import { page_query } from '../../kit/page.js';

/** The wire of moderation. */

/** Characters of the reason that goes with each act, after trimming. */
export const reason_limits = { min: 3, max: 2_000 } as const;

/** The wire counts UTF-16 units before trimming; the limits above are checked after it. */
export const act_body = Type.Object({
  reason: Type.String({ minLength: reason_limits.min, maxLength: 3 * reason_limits.max }),
});

const changed = Type.Boolean({ description: 'False where it was so already.' });

export const hidden_schema = Type.Object({
  id: uuid_schema,
  question_id: uuid_schema,
  user_id: uuid_schema,
  hidden: Type.Boolean(),
  hidden_at: nullable(time_schema),
  changed,
});

export const suspension_schema = Type.Object({
  id: uuid_schema,
  suspended: Type.Boolean(),
  suspended_at: nullable(time_schema),
  changed,
});

export const content_kinds = ['prediction', 'comment'] as const;
export type ContentKind = (typeof content_kinds)[number];

export const hidden_query = Type.Object({
  kind: Type.Optional(textEnum(content_kinds)),
  ...page_query,
});

export const hidden_content_schema = Type.Object({
  kind: textEnum(content_kinds),
  id: uuid_schema,
  question_id: uuid_schema,
  user_id: uuid_schema,
  user_name: Type.String(),
  content: Type.String({ description: 'The reasoning of a prediction, the text of a comment.' }),
  created_at: time_schema,
  hidden_at: time_schema,
});
