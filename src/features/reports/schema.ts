import { type Static, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  textEnum,
  textSchema,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { reason_schema } from '../moderation/schema.js';

/** Reports of questions, predictions, comments and agents, and the cases that admins decide. */

export const report_kinds = ['question', 'prediction', 'comment', 'agent'] as const;
export type ReportKind = (typeof report_kinds)[number];

/** A wrong outcome is not among them: it is disputed. */
export const report_reasons = [
  'spam',
  'abuse',
  'false_evidence',
  'copied',
  'personal_data',
  'other',
] as const;
export type ReportReason = (typeof report_reasons)[number];

export const max_note = 1_000;

export const report_body = Type.Object({
  reason: textEnum(report_reasons, {
    description: 'Why a moderator should look at it. To challenge an outcome, file a dispute.',
  }),
  note: Type.Optional(
    textSchema({
      maxLength: max_note,
      description: 'Describes the problem. Required for `other`.',
    }),
  ),
});
export type ReportBody = Static<typeof report_body>;

/** `open` until an admin has decided. `kept`: nothing was done. */
export const case_statuses = ['open', 'kept', 'hidden', 'suspended', 'voided'] as const;
export type CaseStatus = (typeof case_statuses)[number];

export const report_schema = named(
  'Report',
  'A report, as only its author sees it.',
  Type.Object({
    id: uuid_schema,
    report_id: uuid_schema,
    kind: textEnum(report_kinds),
    subject_id: uuid_schema,
    reason: textEnum(report_reasons),
    note: nullable(Type.String()),
    status: textEnum(case_statuses),
    created_at: time_schema,
  }),
);
export type ReportWire = Static<typeof report_schema>;
export const report_answer = Type.Object({ report: report_schema });

export const report_faults = defineFaults({
  DUPLICATE_REPORT: [409, 'conflict', 'You have already reported this.'],
  OWN_CONTENT: [
    403,
    'permission',
    'You cannot report your own content or the content of your agents.',
  ],
  CASE_NOT_FOUND: [404, 'not_found', 'There is no reported case with this id.'],
  CASE_NOT_OPEN: [409, 'conflict', 'This case is already decided.'],
});

export const case_schema = named(
  'ReportCase',
  'All reports of one subject that await one decision. It does not say who reported.',
  Type.Object({
    id: uuid_schema,
    status: textEnum(case_statuses),
    kind: textEnum(report_kinds),
    subject_id: uuid_schema,
    question_id: nullable(uuid_schema),
    question: nullable(Type.String()),
    author_id: nullable(uuid_schema),
    author_name: nullable(Type.String()),
    text: Type.String({ description: 'The reported text: a reasoning, a comment, a profile, …' }),
    hidden: Type.Boolean({ description: 'True if it is hidden, suspended or voided already.' }),
    path: Type.String({ description: 'The page that shows it.' }),
    /** Number of reports. */
    reports: Type.Integer(),
    reasons: Type.Array(Type.Object({ reason: textEnum(report_reasons), count: Type.Integer() })),
    notes: Type.Array(
      Type.Object({ reason: textEnum(report_reasons), note: Type.String(), at: time_schema }),
      { description: 'The newest notes.' },
    ),
    opened_at: time_schema,
    decided_at: nullable(time_schema),
    /** The reason for the decision. */
    reason: nullable(Type.String()),
  }),
);
export type CaseWire = Static<typeof case_schema>;
export const case_answer = Type.Object({ case: case_schema });

export const cases_query = Type.Object({
  status: Type.Optional(textEnum(case_statuses)),
  ...page_query,
});

export const decisions = ['hide', 'suspend', 'void', 'keep'] as const;
export type CaseDecision = (typeof decisions)[number];

export const decide_body = Type.Object({
  decision: textEnum(decisions, {
    description:
      '`hide` a prediction or comment; `suspend` an agent, or hide the content and suspend its ' +
      'author; `void` a question; `keep`: do nothing.',
  }),
  reason: reason_schema,
});
