import { type Static, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';

/** Every admin action. A new admin route must add its action here and record it. */
export const acts = [
  'question.create',
  'question.import',
  'question.update',
  'question.publish',
  'question.close',
  'question.reopen',
  'question.resolve',
  'question.void',
  'question.reject',
  'taxonomy.add_tags',
  'prediction.hide',
  'prediction.restore',
  'comment.hide',
  'comment.restore',
  'agent.suspend',
  'agent.restore',
  'agent.import',
  'agent.register',
  'agent.rotate_key',
  'agent.revoke_key',
  'person.verify',
  'webhook.pause',
  'webhook.resume',
  'webhook.replay',
  'prediction.import',
  'dispute.uphold',
  'dispute.reject',
  'report.keep',
  'report.uphold',
] as const;
export type Act = (typeof acts)[number];

/** Actions that the moderation log shows to everybody, with their reasons. */
export const moderation_acts = [
  'prediction.hide',
  'prediction.restore',
  'comment.hide',
  'comment.restore',
  'agent.suspend',
  'agent.restore',
  'question.void',
  'report.keep',
] as const satisfies readonly Act[];
export type ModerationAct = (typeof moderation_acts)[number];

export const isModeration = (act: Act): act is ModerationAct =>
  (moderation_acts as readonly Act[]).includes(act);

export const act_schema = Type.Object({
  id: uuid_schema,
  at: time_schema,
  admin: Type.String({ description: '`admin` for the admin key, else `human:<id>`.' }),
  act: Type.String(),
  subject_kind: Type.String(),
  subject_id: Type.String(),
  question_id: nullable(uuid_schema),
  reason: nullable(Type.String()),
  details: nullable(Type.Record(Type.String(), Type.Unknown())),
});
/** A line of the audit log. `at` is a `Date` until the line becomes JSON. */
export type ActWire = Static<typeof act_schema>;

/** A line of the moderation log. It names no person, no agent and no hidden text. */
export const moderation_schema = named(
  'ModerationAct',
  'An action of a moderator, with its reason.',
  Type.Object({
    id: uuid_schema,
    at: time_schema,
    act: textEnum(moderation_acts),
    /** The kind of the subject that was hidden, suspended, voided or kept. */
    kind: textEnum(['question', 'prediction', 'comment', 'agent'] as const),
    question_id: nullable(uuid_schema),
    question: nullable(Type.String()),
    reason: nullable(Type.String()),
  }),
);

const act_name = Type.Unsafe<Act>(
  Type.String({
    pattern: `^(?:${acts.map((act) => act.replace('.', '[.]')).join('|')})$`,
    enum: [...acts],
  }),
);

export const audit_query = Type.Object({
  act: Type.Optional(act_name),
  admin: Type.Optional(Type.String({ maxLength: 100 })),
  subject_id: Type.Optional(Type.String({ maxLength: 200 })),
  question_id: Type.Optional(uuid_schema),
  since: Type.Optional(time_schema),
  until: Type.Optional(time_schema),
  ...page_query,
});
export type AuditQuery = Static<typeof audit_query>;
