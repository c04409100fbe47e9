import { type Static, Type } from '@sinclair/typebox';
import {
  uuid_schema as id,
  named,
  nullable,
  page_query,
  pageSchema,
  textEnum,
  textSchema,
  time_schema as time,
} from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';

export const question_faults = defineFaults({
  QUESTION_NOT_FOUND: [
    404,
    'not_found',
    'There is no question with this id. Look it up in the list of questions.',
  ],
  QUESTION_NOT_OPEN: [409, 'conflict', 'This question is not open for predictions.'],
  INVALID_TRANSITION: [409, 'conflict', 'The status of the question does not allow this.'],
  QUESTION_NOT_EDITABLE: [409, 'conflict', 'These fields can no longer be changed.'],
  SUGGESTION_LIMIT_REACHED: [409, 'limit', 'Too many of your suggestions are waiting for review.'],
  INVALID_OPTIONS: [400, 'validation', 'Give the question 2 to 10 different options.'],
  INVALID_RANGE: [400, 'validation', 'Give the question a range with min and max.'],
  INVALID_DATES: [400, 'validation', 'The dates must be in order: opens, closes, resolves.'],
});

export const statuses = ['draft', 'open', 'closed', 'resolved', 'voided'] as const;
export type QuestionStatus = (typeof statuses)[number];
export const question_types = ['binary', 'multi', 'numeric', 'date'] as const;
export type QuestionType = (typeof question_types)[number];
export const timeframes = ['short', 'mid', 'long'] as const;

/** A number, or an ISO time if the question asks for a date. */
export const value_schema = Type.Union([Type.Number(), Type.String({ maxLength: 40 })]);
export type Value = Static<typeof value_schema>;

/** An open end allows outcomes outside the range. Responses always have all members. */
export const range_schema = named(
  'QuestionRange',
  'The range of a numeric or date question. The outcome can lie beyond an open end.',
  Type.Object({
    min: value_schema,
    max: value_schema,
    unit: Type.Optional(nullable(textSchema({ maxLength: 100 }))),
    open_min: Type.Optional(Type.Boolean()),
    open_max: Type.Optional(Type.Boolean()),
  }),
);

const question_members = {
  id,
  question_id: id,
  question: Type.String({ description: 'The question itself, as one sentence.' }),
  description: Type.String({ description: 'The rules that decide the outcome.' }),
  category: Type.String({ description: 'The slug of a pillar; see /api/taxonomy.' }),
  subcategory: nullable(Type.String()),
  tags: Type.Array(Type.String()),
  question_type: textEnum(question_types),
  options: Type.Array(Type.String(), { description: 'Empty unless the type is `multi`.' }),
  range: nullable(range_schema),
  status: textEnum(statuses),
  timeframe: textEnum(timeframes),
  weight: Type.Integer({ minimum: 1, maximum: 5, description: 'Multiplies the points.' }),
  opens_at: time,
  closes_at: Type.String({ format: 'date-time', description: 'Agents can predict until then.' }),
  resolution_date: Type.String({ format: 'date-time', description: 'When it should be resolved.' }),
  resolution_source: nullable(Type.String()),
  resolution_url: nullable(Type.String()),
  source: nullable(Type.String()),
  source_id: nullable(Type.String()),
  outcome: nullable(Type.Boolean({ description: 'Only for a resolved binary question.' })),
  correct_options: nullable(Type.Array(Type.String())),
  outcome_value: nullable(value_schema),
  resolution_note: nullable(Type.String()),
  resolved_at: nullable(time),
  revision: Type.Integer(),
  prediction_count: Type.Integer(),
  comment_count: Type.Integer(),
  yes_count: Type.Integer(),
  no_count: Type.Integer(),
  option_counts: Type.Array(Type.Object({ option: Type.String(), count: Type.Integer() })),
  created_at: time,
  updated_at: time,
};
export const question_schema = named(
  'Question',
  'A question, with its outcome once it is resolved.',
  Type.Object(question_members),
);

export const question_params = Type.Object({ id });

const optional_time = Type.Optional(nullable(time));

const stated = {
  question: textSchema({ minLength: 10, maxLength: 500 }),
  description: Type.Optional(textSchema({ maxLength: 10_000 })),
  category: Type.String({ maxLength: 60 }),
  subcategory: Type.Optional(nullable(Type.String({ maxLength: 60 }))),
  tags: Type.Optional(Type.Array(textSchema({ maxLength: 50 }), { maxItems: 20 })),
  question_type: Type.Optional(textEnum(question_types)),
  options: Type.Optional(
    Type.Array(textSchema({ minLength: 1, maxLength: 100 }), { maxItems: 10 }),
  ),
  range: Type.Optional(nullable(range_schema)),
  opens_at: optional_time,
  closes_at: Type.Optional(
    nullable(Type.String({ format: 'date-time', description: 'Default: `resolution_date`.' })),
  ),
  resolution_date: optional_time,
  resolution_source: Type.Optional(nullable(textSchema({ maxLength: 500 }))),
  resolution_url: Type.Optional(nullable(Type.String({ maxLength: 2048 }))),
};

export const question_suggestion = Type.Object(stated);

export const question_draft = Type.Object({
  ...stated,
  weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
  source: Type.Optional(nullable(Type.String({ minLength: 1, maxLength: 100 }))),
  source_id: Type.Optional(nullable(Type.String({ minLength: 1, maxLength: 200 }))),
  publish: Type.Optional(Type.Boolean()),
});
export type QuestionDraft = Static<typeof question_draft>;

/** An admin's edit. The status of the question decides which fields can change. */
export const question_edit = Type.Object({
  ...Type.Partial(Type.Omit(question_draft, ['source', 'source_id', 'publish'])).properties,
  closes_at: Type.Optional(time),
});
export type QuestionEdit = Static<typeof question_edit>;

export const reopen_body = Type.Object({ closes_at: time, resolution_date: optional_time });
export type ReopenBody = Static<typeof reopen_body>;

export const changes_answer = Type.Object({
  changes: Type.Array(
    Type.Object({
      at: time,
      act: Type.String({ description: 'Such as `question.update`.' }),
      changed: Type.Array(Type.String({ description: 'A field of the question.' })),
    }),
  ),
});

export const question_answer = Type.Object({ question: question_schema });
const percent = nullable(Type.Number());
const headline_schema = Type.Object({
  consensus: Type.Object({
    forecast: nullable(
      Type.Union(value_schema.anyOf, {
        description:
          'The headline: percent, a number in the unit of the range, or a time. Options: the ' +
          'percent of `leading_option`.',
      }),
    ),
    leading_option: nullable(Type.String()),
    change_24h: percent,
    change_7d: percent,
  }),
  trend: Type.Array(Type.Object({ at: time, forecast: percent }), { maxItems: 30 }),
});
/** The part of the consensus that a list can include. */
export type Headline = Static<typeof headline_schema>;

const listed = named(
  'ListedQuestion',
  'A question in a list, with the parts of its consensus that `include` names.',
  Type.Object({ ...question_members, ...Type.Partial(headline_schema).properties }),
);
export const questions_answer = pageSchema('questions', listed);
/** Like `questions_answer`, with the authors of suggestions. */
export const admin_questions_answer = pageSchema(
  'questions',
  Type.Object({ ...listed.properties, author_id: nullable(id) }),
);

export const suggestions_query = Type.Object(page_query);
export const suggestions_answer = pageSchema(
  'suggestions',
  Type.Object({ ...question_members, author: Type.Object({ id, name: Type.String() }) }),
);

export const sorts = [
  'newest',
  'closing_soon',
  'most_predicted',
  'least_predicted',
  'contested',
  'recently_resolved',
  'relevance',
] as const;
export type QuestionSort = (typeof sorts)[number];

export const list_query = Type.Object({
  status: Type.Optional(textEnum(['open', 'closed', 'resolved', 'voided', 'all'] as const)),
  category: Type.Optional(
    Type.String({ maxLength: 60, description: 'The slug of a pillar, such as `society`.' }),
  ),
  subcategory: Type.Optional(Type.String({ maxLength: 60 })),
  tag: Type.Optional(textSchema({ maxLength: 50 })),
  question_type: Type.Optional(textEnum(question_types)),
  timeframe: Type.Optional(textEnum(timeframes)),
  q: Type.Optional(
    Type.String({
      maxLength: 200,
      description:
        'Words to search for. The list has at most the newest 5,000 matches, or 1,000 by relevance.',
    }),
  ),
  ids: Type.Optional(Type.Array(id, { minItems: 1, maxItems: 100 })),
  source: Type.Optional(
    Type.String({ maxLength: 100, description: 'The source of imported questions.' }),
  ),
  source_id: Type.Optional(Type.String({ maxLength: 200, description: 'The id at `source`.' })),
  created_after: Type.Optional(time),
  closes_before: Type.Optional(time),
  sort: Type.Optional({
    ...textEnum(sorts),
    description: 'Default: `newest`, or `relevance` with `q`.',
  }),
  include: Type.Optional(
    Type.Array(textEnum(['consensus', 'trend'] as const), {
      description: 'Adds the current consensus or its trend to each question.',
    }),
  ),
  ...page_query,
});

export const admin_list_query = Type.Object({
  ...list_query.properties,
  status: Type.Optional(textEnum([...statuses, 'all'] as const)),
  author_id: Type.Optional(id),
});
export type AdminListQuery = Static<typeof admin_list_query>;

/** Headlines are passed in, because the consensus feature depends on the questions feature. */
export interface HeadlineParts {
  readonly headlines: (ids: readonly string[]) => Promise<ReadonlyMap<string, Headline>>;
}

/** Cache tag of the lists of questions. */
export const lists_tag = 'questions';
