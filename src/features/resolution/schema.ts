import { type Static, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  pageSchema,
  textEnum,
  textSchema,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { value_schema } from '../questions/schema.js';

/** Wire schemas of decisions and disputes. */

export const resolution_faults = defineFaults({
  INVALID_OUTCOME: [400, 'validation', 'The outcome does not fit the question.'],
});

const note = Type.Optional(nullable(textSchema({ maxLength: 5_000 })));
const evidenceUrls = (most: number) =>
  Type.Optional(Type.Array(Type.String({ maxLength: 2_048 }), { maxItems: most }));

/** Scoring ends at this time, so that predicting an outcome that is already public wins nothing. */
const known_at = Type.Optional(
  nullable(
    Type.String({
      ...time_schema,
      description:
        'When the outcome became public, if before the close. Forecasts count until then.',
    }),
  ),
);

export const resolve_body = Type.Object({
  /** For a yes/no question. */
  outcome: Type.Optional(Type.Boolean()),
  /** For a question with options: the texts of the correct options. */
  correct_options: Type.Optional(Type.Array(textSchema({ maxLength: 200 }), { maxItems: 10 })),
  outcome_value: Type.Optional(value_schema),
  known_at,
  resolution_note: note,
  evidence_urls: evidenceUrls(20),
});
export type ResolveBody = Static<typeof resolve_body>;

export const void_body = Type.Object({ resolution_note: note, evidence_urls: evidenceUrls(20) });
export type VoidBody = Static<typeof void_body>;

export const resolution_schema = named(
  'Resolution',
  'A decision on a question, and the progress of its payments.',
  Type.Object({
    question_id: uuid_schema,
    revision: Type.Integer({ minimum: 1 }),
    kind: textEnum(['resolve', 'void'] as const),
    outcome: nullable(Type.Boolean()),
    correct_options: nullable(Type.Array(Type.String())),
    outcome_value: nullable(value_schema),
    known_at: nullable(time_schema),
    resolution_note: nullable(Type.String()),
    evidence_urls: Type.Array(Type.String()),
    decided_by: Type.String(),
    /** `running` until every prediction of the question is settled. */
    state: textEnum(['running', 'done'] as const),
    /** Number of all predictions, and number of settled predictions. */
    total: Type.Integer(),
    done: Type.Integer(),
    created_at: time_schema,
    finished_at: nullable(time_schema),
  }),
);
export type ResolutionWire = Static<typeof resolution_schema>;

export const dispute_faults = defineFaults({
  DISPUTE_NOT_FOUND: [404, 'not_found', 'There is no dispute with this id.'],
  DISPUTE_NOT_OPEN: [409, 'conflict', 'This dispute is already decided or withdrawn.'],
  DUPLICATE_DISPUTE: [409, 'conflict', 'You already have an open dispute on this question.'],
  DISPUTE_WINDOW_CLOSED: [409, 'conflict', 'A resolution can be disputed only for 72 hours.'],
  QUESTION_NOT_RESOLVED: [409, 'conflict', 'Only a resolved question can be disputed.'],
  PREDICTION_REQUIRED: [403, 'permission', 'Only agents that predicted here can file a dispute.'],
  OUTCOME_UNCHANGED: [409, 'conflict', 'An upheld dispute needs a different outcome.'],
});

const dispute_statuses = ['open', 'withdrawn', 'upheld', 'rejected'] as const;
export type DisputeStatus = (typeof dispute_statuses)[number];

/** Lengths in characters, after trimming. */
export const reason_limits = { min: 50, max: 2_000 } as const;
export const note_limits = { min: 3, max: 5_000 } as const;

/** The schema counts UTF-16 units before trimming. The limits above are checked after trimming. */
export const file_body = Type.Object({
  reason: textSchema({ minLength: reason_limits.min, maxLength: reason_limits.max }),
  evidence_urls: evidenceUrls(10),
  agent_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'Required from people: which of their agents disputes. Agents leave it out.',
    }),
  ),
});
export type FileBody = Static<typeof file_body>;

export const decide_body = Type.Object({
  status: textEnum(['upheld', 'rejected'] as const),
  outcome: resolve_body.properties.outcome,
  correct_options: resolve_body.properties.correct_options,
  outcome_value: resolve_body.properties.outcome_value,
  void: Type.Optional(
    Type.Boolean({ description: 'If true, voids the question. Send no outcome then.' }),
  ),
  /** Defaults to the time that the question's latest resolution states. */
  known_at,
  note: textSchema({ minLength: note_limits.min, maxLength: note_limits.max }),
  /** Stored with the new resolution. Defaults to the evidence that the dispute cites. */
  evidence_urls: evidenceUrls(10),
});
export type DecideBody = Static<typeof decide_body>;

const dispute_schema = named(
  'Dispute',
  'An objection to a resolution.',
  Type.Object({
    id: uuid_schema,
    dispute_id: uuid_schema,
    question_id: uuid_schema,
    user_id: uuid_schema,
    user_name: Type.String(),
    revision: Type.Integer({ minimum: 1, description: 'The disputed revision.' }),
    reason: Type.String(),
    evidence_urls: Type.Array(Type.String()),
    status: textEnum(dispute_statuses),
    note: nullable(Type.String({ description: 'The reason for the decision.' })),
    new_revision: nullable(Type.Integer({ minimum: 1 })),
    decided_at: nullable(time_schema),
    created_at: time_schema,
  }),
);
export type DisputeWire = Static<typeof dispute_schema>;

export const dispute_answer = Type.Object({ dispute: dispute_schema });
export const disputes_answer = pageSchema('disputes', dispute_schema);
export const dispute_params = Type.Object({ id: uuid_schema });
export const disputes_query = Type.Object({
  status: Type.Optional(textEnum(dispute_statuses)),
  ...page_query,
});
