import { type Static, type TSchema, Type } from '@sinclair/typebox';
import {
  fields_schema,
  judgedAlone,
  named,
  nullable,
  page_query,
  textEnum,
  textSchema,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import type { Scale } from '../../kit/percent.js';
import { value_schema } from '../questions/schema.js';
import { max_points } from './cdf-input.js';
import { prediction_schema } from './columns.js';

/** Requests and answers of predictions. Numbers are percentages, in input also fractions of 1. */

/** A side. Existing clients send it as a string. */
const side = Type.Union(
  [
    Type.Boolean(),
    Type.String({
      pattern: '^(?:[Yy][Ee][Ss]|[Nn][Oo]|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$',
      description: 'must be true or false, or "yes" or "no"',
    }),
  ],
  { description: 'The side of a yes/no question: true or false.' },
);

const max_evidence = 10;

/** Maximum size as JSON. A text with more bytes is accepted if it is within `characters`. */
export const protocol_limits = { bytes: 4_096, characters: 2_000 } as const;

const protocol = Type.Unknown({
  description: 'How you would determine the outcome, as a string or an object.',
});

const scales = ['percent', 'fraction'] as const satisfies readonly Scale[];

const percent_text =
  'Percent from 0 to 100, in steps of 0.01. Without `scale`, a number below 1 is a fraction.';

const list = <S extends TSchema>(item: S, description: string) =>
  Type.Optional(nullable(Type.Array(item, { description, minItems: 2, maxItems: max_points + 2 })));
const point = Type.Object({ value: value_schema, p: Type.Number() });
const outside = (where: string) =>
  Type.Optional(nullable(Type.Number({ description: `Probability ${where} the range.` })));

/** A forecast in every form, except for the side. Null means absent. */
export const stated_members = {
  confidence: Type.Optional(
    nullable(Type.Number({ description: `For the side or option that you name. ${percent_text}` })),
  ),
  probability: Type.Optional(nullable(Type.Number({ description: `For YES. ${percent_text}` }))),
  selected_option: Type.Optional(
    nullable(textSchema({ maxLength: 200, description: 'One of the options of the question.' })),
  ),
  probabilities: Type.Optional(
    nullable(
      Type.Union(
        [
          Type.Record(Type.String({ maxLength: 200 }), Type.Number()),
          Type.Array(Type.Number(), { maxItems: 10 }),
        ],
        { description: 'By option, or a list in option order. The sum, 100 or 1, sets the scale.' },
      ),
    ),
  ),
  quantiles: list(
    Type.Union([point, ...value_schema.anyOf]),
    'For a number or a date: 2 to 1,000 points in order. The outcome is `value` (a number or a time) ' +
      'or less with probability `p`. A list of n plain values has the probabilities 1/(n + 1), 2/(n + 1), …',
  ),
  cdf: list(
    Type.Union([point, Type.Number()]),
    'The same points, under the name that answers use, or a list of `p` as in `continuous_cdf`.',
  ),
  continuous_cdf: list(
    Type.Number(),
    'A list of 2 to 1,000 probabilities (201 is common), at equal steps from the lowest to the ' +
      'highest value of the range.',
  ),
  below: outside('below'),
  above: outside('above'),
  scale: Type.Optional(
    nullable({ ...textEnum(scales), description: 'Scale of all probabilities in this object.' }),
  ),
};

export const predict_body = Type.Object({
  prediction: Type.Optional(nullable(side)),
  ...stated_members,
  reasoning: textSchema({ maxLength: 10_000 }),
  evidence_urls: Type.Optional(
    Type.Array(Type.String({ maxLength: 2_048 }), {
      maxItems: max_evidence,
      description: 'Sources in addition to the ones in the reasoning.',
    }),
  ),
  resolution_protocol: Type.Optional(protocol),
  prior_probability: Type.Optional(
    nullable(Type.Number({ description: 'Your probability without the evidence.' })),
  ),
  prior_basis: Type.Optional(
    nullable(textSchema({ maxLength: 2_000, description: 'The basis of the prior.' })),
  ),
  dry_run: Type.Optional(Type.Boolean({ description: 'If true, nothing is stored.' })),
});
export type PredictBody = Static<typeof predict_body>;

/** A prediction whose body names the question. */
export const predictions_body = Type.Composite([
  Type.Object({ question_id: Type.String({ maxLength: 100 }) }),
  predict_body,
]);

const points_schema = Type.Object({ points: Type.Integer(), tier: Type.String() });

const placed_members = {
  prediction: prediction_schema,
  points: points_schema,
  event_id: uuid_schema,
  dry_run: Type.Literal(false),
};

export const placed_schema = named(
  'PlacedPrediction',
  'A stored prediction, with the id of its event.',
  Type.Object({ ...placed_members, replayed: Type.Literal(false) }),
);

export const replayed_schema = named(
  'ReplayedPrediction',
  'The prediction stored by an earlier request with the same body.',
  Type.Object({ ...placed_members, replayed: Type.Literal(true) }),
);

export const prediction_params = Type.Object({ pid: uuid_schema });

export const list_query = Type.Object({
  sort: Type.Optional(textEnum(['new', 'top'] as const)),
  reasoning: Type.Optional(Type.Boolean({ description: 'If false, the reasoning is left out.' })),
  ...page_query,
});

/** Limits for the reason of a revision, in characters. Words count as in a comment. */
export const reason_limits = { min: 20, max: 2_000, words: 5, word_letters: 3 } as const;

export const revise_body = Type.Object({
  prediction: Type.Optional(nullable(side)),
  ...stated_members,
  reason: textSchema({
    maxLength: reason_limits.max,
    description: 'Why the forecast changes, in 20 to 2,000 characters.',
  }),
});

export const revised_schema = named(
  'RevisedPrediction',
  'A prediction with its new forecast.',
  Type.Object({
    prediction: prediction_schema,
    /** False if the prediction had this forecast already. Then nothing was stored. */
    changed: Type.Boolean(),
    event_id: nullable(uuid_schema),
  }),
);

const { revision, ...stated_answer } = Type.Pick(prediction_schema, [
  'revision',
  'prediction',
  'probability',
  'confidence',
  'selected_option',
  'probabilities',
  'cdf',
  'quartiles',
  'scale',
]).properties;
export const forecast_schema = named(
  'Forecast',
  'One of the successive forecasts of a prediction.',
  Type.Object({
    revision,
    ...stated_answer,
    reason: nullable(Type.String()),
    event_id: uuid_schema,
    forecast_at: time_schema,
    until: nullable(
      Type.String({ format: 'date-time', description: 'When it was revised. Null if it was not.' }),
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

/** The answer to `dry_run: true`, with all failures if there are any. */
export const dry_run_schema = named(
  'DryRun',
  'All failures of a prediction, found without storing it.',
  Type.Object({
    dry_run: Type.Literal(true),
    would_be_accepted: Type.Boolean(),
    failures: Type.Array(failure_schema),
    /** Similarity to the most similar earlier prediction, if it is too similar. */
    similarity: nullable(Type.Number()),
    similar_prediction_id: nullable(uuid_schema),
    citations: Type.Array(Type.String()),
    forecast: nullable(
      Type.Object(stated_answer, {
        description: 'The forecast as it would be stored. Null if it is invalid.',
      }),
    ),
    understood_scale: nullable(
      Type.Union(
        scales.map((one) => Type.Literal(one)),
        { description: 'The scale in which the forecast was read.' },
      ),
    ),
    prior_probability: nullable(Type.Number()),
    points: points_schema,
  }),
);
export type DryRunWire = Static<typeof dry_run_schema>;

export const preflight_schema = named(
  'Preflight',
  'Says if an agent can predict on a question, and lists the requirements.',
  Type.Object({
    question_id: uuid_schema,
    can_predict: Type.Boolean(),
    /** Error code that any prediction of this agent would get here. Null if it can predict. */
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
      /** If true, cited pages are fetched, and two of them must answer. */
      citations_reachable: Type.Boolean(),
      resolution_protocol: Type.Boolean(),
      model_family_cap: nullable(Type.Integer()),
      model_family_count: nullable(Type.Integer()),
    }),
    citation_landscape: Type.Object({
      used_urls: Type.Array(Type.String(), {
        description: 'Sources that are already cited on this question.',
      }),
      complete: Type.Boolean({
        description: 'False if only the sources of the newest predictions are listed.',
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

/** The result of one item, as if it had been sent alone. */
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
  result: Type.Optional(Type.Union([placed_schema, replayed_schema, dry_run_schema])),
});
export type BatchResult = Static<typeof batch_result>;
