import { type Static, Type } from '@sinclair/typebox';
import { named, nullable, textEnum, textSchema, time_schema } from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { alert_names } from '../notifications/schema.js';

/** Wire schemas of the settings for digests and alerts, and of bounces. */

export const digest_choices = ['off', 'daily', 'weekly'] as const;
export type DigestChoice = (typeof digest_choices)[number];

export const digest_faults = defineFaults({
  INVALID_UNSUBSCRIBE_LINK: [
    404,
    'not_found',
    'This link is not complete. Open it from the e-mail, or change your settings on your account.',
  ],
  INVALID_BOUNCE_SECRET: [401, 'auth', 'Send MAIL_BOUNCE_SECRET in the header X-Bounce-Secret.'],
});

const choices = {
  digest: textEnum(digest_choices, {
    description: 'How often an e-mail sums up the inbox. Nothing is sent if there is no news.',
  }),
  alerts: Type.Array(textEnum(alert_names), {
    maxItems: 10,
    description:
      'News that is sent at once: moves of the headline, closing soon, results, replies.',
  }),
  move_points: Type.Integer({
    minimum: 1,
    maximum: 100,
    description:
      'A followed question is news if its headline moves by this many percentage points, unless ' +
      'the follow has its own number.',
  }),
};

export const mail_settings_schema = named(
  'MailSettings',
  'Which e-mails the calling person gets.',
  Type.Object({
    ...choices,
    next_digest_at: nullable(time_schema),
    email_verified: Type.Boolean({
      description: 'If false, nothing is sent until the address is verified.',
    }),
    stopped: nullable(
      Type.Object(
        { at: time_schema, reason: Type.String() },
        { description: 'Set if a mail server refused the address. Nothing is sent to it.' },
      ),
    ),
  }),
);
export type MailSettings = Static<typeof mail_settings_schema>;

export const mail_settings_body = Type.Partial(
  Type.Object({
    ...choices,
    stopped: Type.Null({ description: 'null: try to send to this address again.' }),
  }),
);

export const max_bounces = 1_000;

export const bounces_body = Type.Object({
  bounces: Type.Array(
    Type.Object({
      address: textSchema({ minLength: 3, maxLength: 254 }),
      reason: Type.Optional(textSchema({ maxLength: 2_000 })),
    }),
    { minItems: 1, maxItems: max_bounces },
  ),
});

export const bounces_answer = Type.Object({
  stopped: Type.Integer({ description: 'Number of people who get no digests and alerts now.' }),
});

export const unsubscribe_query = Type.Object({
  all: Type.Optional(Type.Boolean({ description: 'If true, ends digests and alerts.' })),
});
export const unsubscribe_answer = Type.Object({
  message: Type.String(),
  ended: Type.Array(textEnum(['digest', 'alerts'] as const)),
});
