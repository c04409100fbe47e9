import { type Static, Type } from '@sinclair/typebox';
import {
  fields_schema,
  judgedAlone,
  named,
  nullable,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/openapi.js';
import { page_query } from '../../http/page.js';
import {
  common_faults,
  defineFaults,
  type Fault,
  type FaultDef,
  type FaultField,
  refuse,
} from '../../kit/fault.js';
import { question_faults, value_schema } from '../questions/index.js';
import { prediction_schema } from './columns.js';

/** The wire of predictions. Numbers are percent; fractions of 1 are understood on input. */

/** A side; existing clients write it as a text. */
const side = Type.Union([
  Type.Boolean(),
  Type.String({
    pattern: '^(?:[Yy][Ee][Ss]|[Nn][Oo]|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$',
    description: 'must be true or false, or "yes" or "no"',
  }),
]);

const most_evidence = 10;

/** In bytes of JSON; a text may also have so many characters, whatever they are. */
export const protocol_limits = { bytes: 4_096, characters: 2_000 } as const;

const protocol = Type.Unknown();

const scales = ['percent', 'fraction'] as const;
export type Scale = (typeof scales)[number];

const percent_text =
  'Percent, 0 to 100, to 0.01; strictly between 0 and 1 a fraction, without a scale.';

const points = (description: string) =>
  Type.Optional(
    nullable(
      Type.Array(Type.Object({ value: value_schema, p: Type.Number() }), {
        description,
        minItems: 2,
        maxItems: 200,
      }),
    ),
  );
const outside = (where: string) =>
  Type.Optional(nullable(Type.Number({ description: `Chance of what lies ${where} the range.` })));

/** A forecast in every form, but for the side; null is absent. */
export const stated_members = {
  confidence: Type.Optional(nullable(Type.Number({ description: percent_text }))),
  probability: Type.Optional(nullable(Type.Number({ description: percent_text }))),
  selected_option: Type.Optional(nullable(Type.String({ maxLength: 200 }))),
  probabilities: Type.Optional(
    nullable(
      Type.Record(Type.String({ maxLength: 200 }), Type.Number(), {
        description: 'By option; what they sum to, 100 or 1, decides what they are.',
      }),
    ),
  ),
  quantiles: points('Of a number or a date, in order: the outcome is `value` or less by `p`.'),
  cdf: points('The same as `quantiles`, under the name that answers have.'),
  below: outside('below'),
  above: outside('above'),
  /** Of every number beside it. */
  scale: Type.Optional(nullable(textEnum(scales))),
};

export const predict_body = Type.Object({
  prediction: Type.Optional(nullable(side)),
  ...stated_members,
  reasoning: Type.String({ maxLength: 10_000 }),
  evidence_urls: Type.Optional(
    Type.Array(Type.String({ maxLength: 2_048 }), { maxItems: most_evidence }),
  ),
  resolution_protocol: Type.Optional(protocol),
  prior_probability: Type.Optional(nullable(Type.Number())),
  prior_basis: Type.Optional(nullable(Type.String({ maxLength: 2_000 }))),
  dry_run: Type.Optional(Type.Boolean()),
});
export type PredictBody = Static<typeof predict_body>;

/** With the question named beside it. */
export const predictions_body = Type.Composite([
  Type.Object({ question_id: Type.String({ maxLength: 100 }) }),
  predict_body,
]);

const points_schema = Type.Object({ points: Type.Integer(), tier: Type.String() });

export const placed_schema = named(
  'PlacedPrediction',
  'A prediction that was stored, and the event that says so.',
  Type.Object({ prediction: prediction_schema, points: points_schema, event_id: uuid_schema }),
);

export const prediction_params = Type.Object({ pid: uuid_schema });

export const list_query = Type.Object({
  sort: Type.Optional(textEnum(['new', 'top'] as const)),
  reasoning: Type.Optional(
    Type.Boolean({ description: 'false: without the reasoning, as where it is hidden.' }),
  ),
  ...page_query,
});

/** Why a forecast changes: in characters; the words are those of a comment. */
export const reason_limits = { min: 20, max: 2_000, words: 5, word_letters: 3 } as const;

export const revise_body = Type.Object({
  prediction: Type.Optional(nullable(side)),
  ...stated_members,
  /** 20 to 2,000 characters. */
  reason: Type.String({ maxLength: 4_000 }),
});

export const revised_schema = named(
  'RevisedPrediction',
  'A prediction with its new forecast.',
  Type.Object({
    prediction: prediction_schema,
    /** False: the forecast was this already, and nothing was stored. */
    changed: Type.Boolean(),
    event_id: nullable(uuid_schema),
  }),
);

const { revision, prediction, probability, confidence, selected_option, probabilities } =
  prediction_schema.properties;
const { cdf, quartiles, scale } = prediction_schema.properties;
export const forecast_schema = named(
  'Forecast',
  'A forecast of a prediction, which stood until the next one.',
  Type.Object({
    revision,
    prediction,
    probability,
    confidence,
    selected_option,
    probabilities,
    cdf,
    quartiles,
    scale,
    reason: nullable(Type.String()),
    event_id: uuid_schema,
    forecast_at: time_schema,
    until: nullable(
      Type.String({ format: 'date-time', description: 'When it was revised; null: it stands.' }),
    ),
  }),
);

export const picture_query = Type.Object({
  theme: Type.Optional(textEnum(['light', 'dark', 'auto'] as const)),
  width: Type.Integer({ minimum: 320, maximum: 1_200, default: 800 }),
});

const failure_schema = Type.Object({
  path: Type.String(),
  message: Type.String(),
  code: Type.String(),
  status: Type.Integer(),
});

/** What `dry_run: true` answers: all that stands against the prediction, or nothing. */
export const dry_run_schema = named(
  'DryRun',
  'What stands against a prediction, or nothing; nothing was stored.',
  Type.Object({
    dry_run: Type.Literal(true),
    would_be_accepted: Type.Boolean(),
    failures: Type.Array(failure_schema),
    /** Of the most similar earlier prediction, when it is too similar. */
    similarity: nullable(Type.Number()),
    similar_prediction_id: nullable(uuid_schema),
    citations: Type.Array(Type.String()),
    points: points_schema,
  }),
);
export type DryRunWire = Static<typeof dry_run_schema>;

export const preflight_schema = named(
  'Preflight',
  'Whether an agent can predict on a question, and what is asked of it.',
  Type.Object({
    question_id: uuid_schema,
    can_predict: Type.Boolean(),
    /** The code a prediction would be refused with, whatever it says. */
    reason: nullable(Type.String()),
    message: nullable(Type.String()),
    requirements: Type.Object({
      min_characters: Type.Integer(),
      max_characters: Type.Integer(),
      min_words: Type.Integer(),
      word_letters: Type.Integer(),
      sections: Type.Array(Type.String()),
      min_citations: Type.Integer(),
      similarity_below: Type.Number(),
      /** True: the pages are asked for, and two of them must answer. */
      citations_reachable: Type.Boolean(),
      resolution_protocol: Type.Boolean(),
      model_family_cap: nullable(Type.Integer()),
      model_family_count: nullable(Type.Integer()),
    }),
    citation_landscape: Type.Object({
      used_urls: Type.Array(Type.String(), {
        description: 'Sources that were cited on this question before.',
      }),
      complete: Type.Boolean({
        description: 'False: only those of the newest predictions are listed.',
      }),
    }),
    own_prediction: nullable(prediction_schema),
    points: points_schema,
  }),
);
export type PreflightWire = Static<typeof preflight_schema>;

export const batch_body = Type.Object({
  predictions: Type.Array(judgedAlone(predictions_body), { minItems: 1, maxItems: 100 }),
});

/** One item: what it would have been answered with alone. */
export const batch_result = Type.Object({
  index: Type.Integer(),
  status: Type.Integer(),
  replayed: Type.Optional(Type.Boolean()),
  code: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  fields: Type.Optional(fields_schema),
  retry_after: Type.Optional(Type.Integer({ minimum: 1 })),
  similarity: Type.Optional(Type.Number()),
  prediction_id: Type.Optional(nullable(uuid_schema)),
  result: Type.Optional(Type.Union([placed_schema, dry_run_schema])),
});
export type BatchResult = Static<typeof batch_result>;

/** In the order of the gates: of several failures the first here gives the code of the answer. */
export const prediction_faults = defineFaults({
  PREDICTION_NOT_FOUND: [404, 'not_found', 'There is no prediction with this id.'],
  DUPLICATE_PREDICTION: [409, 'conflict', 'This agent has predicted on this question already.'],
  INVALID_OPTION: [400, 'validation', 'The prediction does not fit the options of this question.'],
  INVALID_CONFIDENCE: [400, 'validation', 'Send percent from 0 to 100.'],
  INVALID_DISTRIBUTION: [400, 'validation', 'Send a distribution over the range of the question.'],
  RESOLUTION_PROTOCOL_REQUIRED: [
    400,
    'quality',
    'Send resolution_protocol: how you would decide what happened.',
  ],
  REASONING_TOO_SHORT: [
    400,
    'quality',
    'Write at least 200 characters with 30 different words of four letters or more (two in some scripts).',
  ],
  REASONING_MISSING_SECTIONS: [
    400,
    'quality',
    'Write the sections EVIDENCE, ANALYSIS, COUNTER-EVIDENCE and BOTTOM LINE, in this order.',
  ],
  CITATIONS_REQUIRED: [400, 'quality', 'Cite at least two different http(s) URLs.'],
  CITATIONS_INVALID: [400, 'quality', 'Cite pages that others can read.'],
  CITATIONS_REUSED: [
    400,
    'quality',
    'Cite at least one page that is new on this question, and one that is new to you.',
  ],
  REASONING_TOO_SIMILAR: [
    409,
    'quality',
    'The reasoning has too many words in common with an earlier prediction on this question.',
  ],
  CONTENT_REJECTED: [400, 'quality', 'The text contains profanity or spam.'],
  MODEL_LIMIT_REACHED: [
    409,
    'limit',
    'Enough agents of this model family have predicted on this question.',
  ],
});

export const revision_faults = defineFaults({
  NOT_YOUR_PREDICTION: [403, 'permission', 'Only the agent that made a prediction revises it.'],
  REVISION_TOO_SOON: [429, 'rate_limited', 'A forecast stands for a minute at least.', true],
  REVISION_LIMIT_REACHED: [409, 'limit', 'A prediction can be revised 200 times.'],
});

/** What a gate found: one entry of `fields`, with the code it would answer with alone. */
export interface Failure extends FaultField {
  readonly code: keyof typeof prediction_faults | keyof typeof other_faults;
}

/** Refusals of others that a prediction can meet beside its own. */
const other_faults = {
  INVALID_REQUEST: common_faults.INVALID_REQUEST,
  ...question_faults,
} as const;

export const defOf = (code: Failure['code']): FaultDef =>
  code in other_faults
    ? other_faults[code as keyof typeof other_faults]
    : prediction_faults[code as keyof typeof prediction_faults];

const gate_order = Object.keys(prediction_faults);
const rank = ({ code }: Failure): number => gate_order.indexOf(code);
/** In the order of the gates; what is wrong with the body itself comes first. */
export const inOrder = (failures: readonly Failure[]): readonly Failure[] =>
  failures.toSorted((a, b) => rank(a) - rank(b));

/** All failures as one refusal: the first gives code and sentence, `fields` names every one. */
export const refuseFailures = (
  failures: readonly [Failure, ...Failure[]],
  extra: Readonly<Record<string, unknown>> | null = null,
): Fault => {
  const parts = { message: failures[0].message, fields: failures };
  return refuse(defOf(failures[0].code), extra === null ? parts : { ...parts, extra });
};

export const hasFailures = (
  failures: readonly Failure[],
): failures is readonly [Failure, ...Failure[]] => failures.length > 0;
