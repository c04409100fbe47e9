import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { named, nullable, time_schema, uuid_schema } from '../../http/schemas.js';
import { toPercent } from '../../kit/percent.js';
import { type QuestionType, value_schema } from '../questions/schema.js';
import { showCdf } from './cdf-input.js';

/**
 * The columns of a prediction: the insert, the reads, the types of rows and the answer follow from this
 * table. A new column needs a line here, a migration, and a value (`placing.ts`).
 */

/** By the type in Postgres: what it is in this program. `bytea` is given and read as hex. */
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
  /** In basis points; in answers percent. */
  readonly is_bp?: true;
  /** Part of the reasoning: hidden with it (`sight.ts`). */
  readonly is_reasoning?: true;
  /** Its schema in answers, where it has the same name and value there. */
  readonly wire?: TSchema;
}

const percent_range = { minimum: 0, maximum: 100 };
const percent = Type.Number(percent_range);
const of_yes = Type.Number({ ...percent_range, description: 'The chance of YES.' });
const in_answer = Type.Number({ ...percent_range, description: 'In the side or option it names.' });
const text = Type.String();

const columns = {
  question_id: { type: 'uuid', wire: uuid_schema },
  agent_id: { type: 'uuid' },
  id: { type: 'uuid', wire: uuid_schema },
  /** Whose agent it was when it predicted. */
  owner_id: { type: 'uuid', is_null: true },
  prediction: { type: 'boolean', is_null: true, wire: nullable(Type.Boolean()) },
  probability: { type: 'smallint', is_null: true, is_bp: true, wire: nullable(of_yes) },
  confidence: { type: 'smallint', is_bp: true, wire: in_answer },
  /** The place of the option, from 0; in answers the option. */
  selected_option: { type: 'smallint', is_null: true },
  /** Basis points by option, adding up to 10,000; null where one option was named. */
  probabilities: { type: 'smallint[]', is_null: true },
  /** Of a number or a date: v₀, p₀, v₁, p₁, … (`cdf-input.ts`). */
  cdf: { type: 'double precision[]', is_null: true },
  reasoning: { type: 'text', is_reasoning: true },
  citations: { type: 'text[]', wire: Type.Array(text), is_reasoning: true },
  model_family: { type: 'text', wire: text },
  resolution_protocol: { type: 'json', is_null: true, wire: Type.Unknown() },
  prior_probability: { type: 'smallint', is_null: true, is_bp: true, wire: nullable(percent) },
  prior_basis: { type: 'text', is_null: true, wire: nullable(text), is_reasoning: true },
  /** How often the forecast was revised; it is the latest, and the reasoning that of the first. */
  revision: { type: 'smallint', wire: Type.Integer({ minimum: 0 }) },
  revised_at: { type: 'timestamptz', is_null: true },
  revision_reason: { type: 'text', is_null: true, wire: nullable(text), is_reasoning: true },
  revision_event_id: { type: 'uuid', is_null: true },
  /** SHA-256 of the body it came in: an identical repeat is answered with the first result. */
  body_digest: { type: 'bytea' },
  event_id: { type: 'uuid' },
  created_at: { type: 'timestamptz' },
} as const satisfies Readonly<Record<string, Column>>;

type Columns = typeof columns;
type Name = keyof Columns;
type ValueOf<C extends Column> =
  | Values[C['type']]
  | (C extends { readonly is_null: true } ? null : never);

/** A prediction as it is stored, made here or imported. */
export type NewPrediction = { readonly [N in Name]: ValueOf<Columns[N]> };

/** A prediction as it is read, with what is counted on it and what its agent and question say. */
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

/** For an insert of rows as JSON: the columns, the columns of the record `d`, and what is taken of it. */
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

/** The columns of prediction `p` that a `PredictionRow` has as they are. */
export const read_sql = readSql({ reasoning: true });
/** The same where nobody reads the reasoning, which is most of a row. */
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
      description: 'Of a number or a date: the chance that it is this or less.',
    }),
  ),
  quartiles: nullable(
    Type.Array(value_schema, { description: 'Where 25, 50 and 75 % are reached.' }),
  ),
  scale: Type.Literal('percent', {
    description: 'Of all numbers here: sent back, none is taken for a fraction.',
  }),
  reasoning: nullable(
    Type.String({ description: 'Null where it is hidden until the reader has predicted.' }),
  ),
  reasoning_hidden: Type.Optional(Type.Literal(true)),
  upvotes: Type.Integer(),
  downvotes: Type.Integer(),
  created_at: time_schema,
  revised_at: nullable(time_schema),
};
export const prediction_schema = named(
  'Prediction',
  'What an agent forecasts on a question, as it stands, with the reasoning it was made with.',
  Type.Object(prediction_members),
);
export type PredictionWire = Static<typeof prediction_schema>;

type About = Pick<
  PredictionRow,
  'agent_name' | 'model' | 'options' | 'question_type' | 'selected_option' | 'upvotes' | 'downvotes'
>;

/** A stored prediction and what else is known of it; written out, for it is made for each 201. */
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

/** Where readers do not see the reasoning yet. */
export const hidden_reasoning = Object.fromEntries([
  ...entries
    .filter(([, { is_reasoning }]) => is_reasoning)
    .map(([name, { type }]) => [name, type.endsWith('[]') ? [] : null]),
  ['reasoning_hidden', true],
]) as Pick<PredictionWire, HiddenName | 'reasoning_hidden'>;

/** In percent by the names of the options; null where the rest is spread evenly. */
export const nameProbabilities = (
  options: readonly string[],
  probabilities: readonly number[] | null,
): Record<string, number> | null =>
  probabilities === null
    ? null
    : Object.fromEntries(
        options.map((option, index) => [option, toPercent(probabilities[index] ?? 0)]),
      );
