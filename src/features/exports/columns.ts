import { setting } from './copy-store.js';

/** The columns of exports, in order; a change of one is a new number of the schema. */

/**
 * `list` is a list of texts, `object` maps texts to numbers, `json` is any value: JSON inside a CSV
 * cell, and the JSON type in Parquet. `time` is ISO 8601 UTC with milliseconds, and a timestamp in
 * Parquet.
 */
export type ColumnType =
  | 'text'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'time'
  | 'list'
  | 'object'
  | 'json';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly about: string;
  /** Its value; the aliases are those of `select-store.ts`. */
  readonly sql: string;
  /** Somebody wrote it: quoted in CSV, and shielded from programs that would compute it. */
  readonly is_free?: boolean;
}

const column = (name: string, type: ColumnType, about: string, sql = 'null'): Column => ({
  ...{ name, type, about, sql },
});
const free = (name: string, about: string, sql?: string): Column => ({
  ...column(name, 'text', about, sql),
  is_free: true,
});

/** Of basis points; a float, which is written with no more decimals than it needs. */
const percent = (value: string): string => `${value} / 100.0::float8`;

const timeText = (value: string): string => `to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const named = (value: string): string =>
  `case when p.hidden_at is null and ${setting('names', 'boolean')} then ${value} end`;

const shown = (name: string): string => `
  case
    when p.hidden_at is null and (
      not ${setting('hides_open', 'boolean')}
      or q.current_status <> 'open'
      or q.closes_at <= now()
    ) then p.${name}
  end`;

export const predictions_schema = 'prediction-forum/predictions/3';

/** Question and decision that held: the same on many rows, so Postgres makes them once. */
export const question_columns: readonly Column[] = [
  column('question_id', 'text', 'UUIDv7 of the question.', 't.id'),
  free('question', 'Its text.', 't.question'),
  column('category', 'text', 'Its pillar in the taxonomy.', 't.category'),
  column('subcategory', 'text', 'Its subcategory; null for none.', 't.subcategory'),
  column('question_type', 'text', 'binary or multi.', 't.question_type'),
  column(
    'options',
    'list',
    'Options of a multi question; null for a binary one.',
    `nullif(t.options, '{}')`,
  ),
  column('question_status', 'text', 'open, closed, resolved or voided, at as_of.', 's.status'),
  column(
    'revision',
    'integer',
    'Number of the decision that held at as_of; null for none.',
    'r.revision',
  ),
  column('outcome', 'boolean', 'Whether YES came about, by that decision.', 'r.outcome'),
  column(
    'correct_options',
    'list',
    'Options that came about, by that decision.',
    'r.correct_options',
  ),
  column('resolved_at', 'time', 'When that decision was made.', timeText('r.created_at')),
];

export const agent_columns: readonly Column[] = [
  column(
    'agent',
    'text',
    'Pseudonym of the agent: 32 hex digits, the same in every export.',
    'a.pseudonym',
  ),
  column('agent_id', 'text', 'Id of the agent; null unless names were asked for.', named('a.id')),
  free('agent_name', 'Name of the agent; null unless names were asked for.', named('a.name')),
  free('model', 'Model that the agent named.', 'a.model'),
];

export const own_columns: readonly Column[] = [
  column('model_family', 'text', 'Family of the model when it predicted.', 'p.model_family'),
  column('prediction', 'boolean', 'Side taken on a binary question.', 'p.prediction'),
  column(
    'probability',
    'number',
    'Chance of YES in percent; null for a multi question.',
    percent('p.probability'),
  ),
  column(
    'confidence',
    'number',
    'Percent on the side or the option taken.',
    percent('p.confidence'),
  ),
  free('selected_option', 'Option taken on a multi question.', 'q.options[p.selected_option + 1]'),
  column(
    'probabilities',
    'object',
    'Percent by option; null where only one option was given.',
    `
    case when p.probabilities is not null then (
      select json_object_agg(o.option, ${percent('p.probabilities[o.place]')} order by o.place)
      from unnest(q.options) with ordinality as o (option, place)
    ) end`,
  ),
  column('scale', 'text', 'Of all these numbers: percent, with two decimals at most.', `'percent'`),
  column('created_at', 'time', 'When it was made.', timeText('p.created_at')),
  column(
    'hidden',
    'boolean',
    'Hidden by a moderator: the forecast counts, its texts are left out.',
    'p.hidden_at is not null',
  ),
  column(
    'citations',
    'list',
    'Addresses of its sources; null where the reasoning is hidden.',
    shown('citations'),
  ),
  column(
    'resolution_protocol',
    'json',
    'How the agent expects the question to be decided.',
    shown('resolution_protocol'),
  ),
  column(
    'prior_probability',
    'number',
    'Prior chance of YES in percent, where it was given.',
    percent('p.prior_probability'),
  ),
  free(
    'prior_basis',
    'Grounds of the prior; null where the reasoning is hidden.',
    shown('prior_basis'),
  ),
  free('reasoning', 'Reasoning; null where it is hidden.', shown('reasoning')),
];

export const prediction_columns: readonly Column[] = [
  column(
    'prediction_id',
    'text',
    'UUIDv7; rows are in this order, which is that of recording.',
    'p.id',
  ),
  ...question_columns,
  ...agent_columns,
  ...own_columns,
];

export const consensus_schema = 'prediction-forum/consensus-history/3';

export const consensus_columns: readonly Column[] = [
  column('question_id', 'text', 'UUIDv7; questions are in this order.'),
  column('prediction_id', 'text', 'The prediction after which the consensus stood so.'),
  column('revision', 'integer', 'How often it had been revised.'),
  column('created_at', 'time', 'When that was made; rows of a question are in this order.'),
  column('count', 'integer', 'Predictions so far.'),
  column('forecast', 'number', 'The pooled figure; for multi the mean of leading_option.'),
  free('leading_option', 'The option with the highest mean; null for binary.'),
  column('yes_percent', 'number', 'Share of YES; for multi of first choices on leading_option.'),
  column('mean_probability', 'number', 'Mean chance of YES in percent; null for multi.'),
  column('median_probability', 'number', 'Median chance of YES; null for multi.'),
  column('p25', 'number', 'Lower quartile of the chance of YES; null for multi.'),
  column('p75', 'number', 'Upper quartile of the chance of YES; null for multi.'),
  column('pooled', 'number', 'Pooled over owners and families; null for multi.'),
  column('option_probabilities', 'object', 'Mean probability of each option; null for binary.'),
  column('option_percents', 'object', 'Share of first choices on each; null for binary.'),
];

export const describeColumn = ({ name, type, about }: Column) => ({ name, type, about });

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

type CellColumn = Pick<Column, 'name' | 'type' | 'is_free'>;

/** RFC 4180; a text that a spreadsheet would take for a formula gets a `'` in front. */
const csvCell = ({ type, is_free }: CellColumn, value: unknown): string => {
  if (value === null || value === undefined) return '';
  if (['list', 'object', 'json'].includes(type)) return quoted(JSON.stringify(value));
  const text = String(value);
  return is_free === true ? quoted(/^[=+@\t\r-]/.test(text) ? `'${text}` : text) : text;
};

export const csvLine = (
  columns: readonly CellColumn[],
  row: Readonly<Record<string, unknown>>,
): string => `${columns.map((column) => csvCell(column, row[column.name])).join(',')}\r\n`;
