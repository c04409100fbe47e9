import { type Static, Type } from '@sinclair/typebox';
import { nullable, textEnum, time_schema, uuid_schema } from '../../http/openapi.js';
import { defineFaults } from '../../kit/fault.js';

/** The wire of decisions about questions. */

export const resolution_faults = defineFaults({
  INVALID_OUTCOME: [400, 'validation', 'The outcome does not fit the question.'],
});

const note = Type.Optional(nullable(Type.String({ maxLength: 5_000 })));
const evidence = Type.Optional(Type.Array(Type.String({ maxLength: 2_048 }), { maxItems: 20 }));

export const resolve_body = Type.Object({
  /** Of a yes/no question. */
  outcome: Type.Optional(Type.Boolean()),
  /** Of a question with options, by their texts. */
  correct_options: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 10 })),
  resolution_note: note,
  evidence_urls: evidence,
});
export type ResolveBody = Static<typeof resolve_body>;

export const void_body = Type.Object({ resolution_note: note, evidence_urls: evidence });
export type VoidBody = Static<typeof void_body>;

export const resolution_schema = Type.Object({
  question_id: uuid_schema,
  revision: Type.Integer({ minimum: 1 }),
  kind: textEnum(['resolve', 'void'] as const),
  outcome: nullable(Type.Boolean()),
  correct_options: nullable(Type.Array(Type.String())),
  resolution_note: nullable(Type.String()),
  evidence_urls: Type.Array(Type.String()),
  decided_by: Type.String(),
  /** `running` until every prediction of the question is settled. */
  state: textEnum(['running', 'done'] as const),
  /** Predictions in all, and those settled so far. */
  total: Type.Integer(),
  done: Type.Integer(),
  created_at: time_schema,
  finished_at: nullable(time_schema),
});
export type ResolutionWire = Static<typeof resolution_schema>;
