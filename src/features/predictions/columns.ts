import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { named, nullable, time_schema, uuid_schema } from '../../http/schemas.js';
import { toPercent } from '../../kit/percent.js';
import { type QuestionType, value_schema } from '../questions/schema.js';
import { showCdf } from './cdf-input.js';

/**
 * The columns of a prediction. The insert, the reads, the types of rows and the answer are derived
 * from this table. A new column needs a line here, a migration, and a value (`answering.ts`).
 */

/** TypeScript types of the Postgres types. `bytea` is written and read as hex. */
interface Values {
  readonly uuid: string;
  readonly boolean: boolean;
  readonly smallint: number;
  readonly 'smallint[]': readonly number[];
  readonly 'double precision[]': readonly number[];
  readonly text: string;
  readonly 'text[]': readonly string[];
  readonly json: unknown;
  readonly bytea: string;
  readonly timestamptz: Date;
}

interface Column {
  readonly type: keyof Values;
  readonly is_null?: true;
  /** Basis points here, percent in answers. */
  readonly is_bp?: true;
  /** Part of the reasoning, and hidden with it (`visibility.ts`). */
  readonly is_reasoning?: true;
  /** Schema in answers. Left out if the column has another name or type there. */
  readonly wire?: TSchema;
}

const percent_range = { minimum: 0, maximum: 100 };
const percent = Type.Number(percent_range);
const of_yes = Type.Number({ ...percent_range, description: 'Probability of YES.' });
const in_answer = Type.Number({
  ...percent_range,
  description: 'Probability of the side or option that it names.',
});
const text = Type.String();

const columns = {
  question_id: { type: 'uuid', wire: uuid_schema },
  agent_id: { type: 'uuid' },
  id: { type: 'uuid', wire: uuid_schema },
  /** Owner of the agent when it predicted. */
  owner_id: { type: 'uuid', is_null: true },
  prediction: { type: 'boolean', is_null: true, wire: nullable(Type.Boolean()) },
  probability: { type: 'smallint', is_null: true, is_bp: true, wire: nullable(of_yes) },
  confidence: { type: 'smallint', is_bp: true, wire: in_answer },
  /** Index of the option. Answers have the text of the option instead. */
  selected_option: { type: 'smallint', is_null: true },
  /** Basis points by option, which sum to 10,000. Null if only one option was named. */
  probabilities: { type: 'smallint[]', is_null: true },
  /** For a number or a date: v₀, p₀, v₁, p₁, … (`cdf-input.ts`). */
  cdf: { type: 'double precision[]', is_null: true },
  reasoning: { type: 'text', is_reasoning: true },
  citations: { type: 'text[]', wire: Type.Array(text), is_reasoning: true },
  model_family: { type: 'text', wire: text },
  resolution_protocol: { type: 'json', is_null: true, wire: Type.Unknown() },
  prior_probability: { type: 'smallint', is_null: true, is_bp: true, wire: nullable(percent) },
  prior_basis: { type: 'text', is_null: true, wire: nullable(text), is_reasoning: true },
  /** Number of revisions. The forecast is the latest one; the reasoning belongs to the first. */
  revision: { type: 'smallint', wire: Type.Integer({ minimum: 0 }) },
  revised_at: { type: 'timestamptz', is_null: true },
  revision_reason: { type: 'text', is_null: true, wire: nullable(text), is_reasoning: true },
  revision_event_id: { type: 'uuid', is_null: true },
  /** SHA-256 of the request body. An identical repeat is answered with the first result. */
  body_digest: { type: 'bytea' },
  event_id: { type: 'uuid' },
  created_at: { type: 'timestamptz' },
} as const satisfies Readonly<Record<string, Column>>;

type Columns = typeof columns;
type Name = keyof Columns;
type ValueOf<C extends Column> =
  | Values[C['type']]
  | (C extends { readonly is_null: true } ? null : never);

/** A stored prediction, made here or imported. */
export type NewPrediction = { readonly [N in Name]: ValueOf<Columns[N]> };

/** A prediction as read, with its votes and with columns of its agent and question. */
export interface PredictionRow extends Omit<NewPrediction, 'owner_id' | 'selected_option'> {
  readonly agent_name: string;
  readonly model: string;
  readonly options: readonly string[];
  readonly question_type: QuestionType;
  readonly selected_option: string | null;
  readonly upvotes: number;
  readonly downvotes: number;
}

const entries = Object.entries(columns) as readonly (readonly [Name, Column])[];

/** Parts of an insert of JSON rows: column names, columns of the record `d`, selected values. */
export const insert_sql = {
  names: entries.map(([name]) => name).join(', '),
  record: entries
    .map(([name, { type }]) => `${name} ${type === 'bytea' ? 'text' : type}`)
    .join(', '),
  taken: entries
    .map(([name, { type }]) => (type === 'bytea' ? `decode(${name}, 'hex')` : name))
    .join(', '),
} as const;

const readSql = ({ reasoning }: { readonly reasoning: boolean }): string =>
  entries
    .filter(([name]) => name !== 'owner_id' && name !== 'selected_option')
    .map(([name, { type, is_reasoning }]) => {
      if (is_reasoning && !reasoning) return `null as ${name}`;
      return type === 'bytea' ? `encode(p.${name}, 'hex') as ${name}` : `p.${name}`;
    })
    .join(', ');

/** The columns of prediction `p` that appear unchanged in a `PredictionRow`. */
export const read_sql = readSql({ reasoning: true });
/** The same without the reasoning, which is most of a row. */
export const short_sql = readSql({ reasoning: false });

type Shown = { [N in Name as Columns[N] extends { wire: TSchema } ? N : never]: Columns[N] };
type ShownSchemas = { [N in keyof Shown]: Shown[N] extends { wire: infer S } ? S : never };

const shown = entries.filter(([, { wire }]) => wire !== undefined);

const prediction_members = {
  ...(Object.fromEntries(shown.map(([name, { wire }]) => [name, wire])) as ShownSchemas),
  prediction_id: uuid_schema,
  user_id: uuid_schema,
  user_name: text,
  model: text,
  selected_option: nullable(text),
  probabilities: nullable(Type.Record(text, percent)),
  cdf: nullable(
    Type.Array(Type.Object({ value: value_schema, p: percent }), {
      description: 'The outcome is `value` or less with probability `p`.',
    }),
  ),
  quartiles: nullable(Type.Array(value_schema, { description: 'The values at 25, 50 and 75 %.' })),
  scale: Type.Literal('percent', {
    description: 'The scale of all probabilities here. If you copy a forecast, copy it too.',
  }),
  reasoning: nullable(
    Type.String({ description: 'Null if it is hidden until the reader has predicted.' }),
  ),
  reasoning_hidden: Type.Optional(Type.Literal(true)),
  upvotes: Type.Integer(),
  downvotes: Type.Integer(),
  created_at: time_schema,
  revised_at: nullable(time_schema),
};
export const prediction_schema = named(
  'Prediction',
  'The latest forecast of an agent on a question, with the reasoning of the first one.',
  Type.Object(prediction_members),
);
export type PredictionWire = Static<typeof prediction_schema>;

type About = Pick<
  PredictionRow,
  'agent_name' | 'model' | 'options' | 'question_type' | 'selected_option' | 'upvotes' | 'downvotes'
>;

/** Converts a stored prediction to its answer. Written out for speed: every 201 needs it. */
export const showPrediction = (
  row: Omit<NewPrediction, 'owner_id' | 'selected_option' | 'body_digest' | 'event_id'>,
  about: About,
): PredictionWire => {
  const shown_cdf = showCdf(row.cdf, about) ?? no_cdf;
  return {
    question_id: row.question_id,
    id: row.id,
    prediction: row.prediction,
    probability: row.probability === null ? null : toPercent(row.probability),
    confidence: toPercent(row.confidence),
    citations: row.citations as string[],
    model_family: row.model_family,
    resolution_protocol: row.resolution_protocol,
    prior_probability: row.prior_probability === null ? null : toPercent(row.prior_probability),
    prior_basis: row.prior_basis,
    revision: row.revision,
    revision_reason: row.revision_reason,
    prediction_id: row.id,
    user_id: row.agent_id,
    user_name: about.agent_name,
    model: about.model,
    selected_option: about.selected_option,
    probabilities: nameProbabilities(about.options, row.probabilities),
    cdf: shown_cdf.cdf,
    quartiles: shown_cdf.quartiles,
    scale: 'percent',
    reasoning: row.reasoning,
    upvotes: about.upvotes,
    downvotes: about.downvotes,
    created_at: row.created_at.toISOString(),
    revised_at: row.revised_at?.toISOString() ?? null,
  };
};

export const toWire = (row: Omit<PredictionRow, 'body_digest' | 'event_id'>): PredictionWire =>
  showPrediction(row, row);

export const no_cdf = { cdf: null, quartiles: null };

type HiddenName = Extract<
  { [N in Name]: Columns[N] extends { is_reasoning: true } ? N : never }[Name],
  keyof PredictionWire
>;

/** These members replace the reasoning for readers who may not see it yet. */
export const hidden_reasoning = Object.fromEntries([
  ...entries
    .filter(([, { is_reasoning }]) => is_reasoning)
    .map(([name, { type }]) => [name, type.endsWith('[]') ? [] : null]),
  ['reasoning_hidden', true],
]) as Pick<PredictionWire, HiddenName | 'reasoning_hidden'>;

/** Returns the percentages by option name. Null if only one option was named. */
export const nameProbabilities = (
  options: readonly string[],
  probabilities: readonly number[] | null,
): Record<string, number> | null =>
  probabilities === null
    ? null
    : Object.fromEntries(
        options.map((option, index) => [option, toPercent(probabilities[index] ?? 0)]),
      );
