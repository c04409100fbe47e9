import { setting } from './copy-store.js';

/** The columns of exports, in order. If a column changes, its schema needs a new number. */

/**
 * `list` is a list of texts, `numbers` a list of numbers, and `json` any value. All three are JSON
 * inside a CSV cell, and have the JSON type in Parquet. `value` is a number or a time; CSV shows a
 * time without JSON quotes. `time` is ISO 8601 in UTC with milliseconds, and a UTC timestamp in
 * Parquet.
 */
export type ColumnType =
  | 'text'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'time'
  | 'list'
  | 'numbers'
  | 'json'
  | 'value';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly about: string;
  /** SQL expression of the value. It uses the aliases of `select-store.ts`. */
  readonly sql: string;
  /**
   * Text that somebody wrote. CSV quotes it and keeps spreadsheets from reading it as a formula.
   */
  readonly is_free?: boolean;
}

const column = (name: string, type: ColumnType, about: string, sql = 'null'): Column => ({
  name,
  type,
  about,
  sql,
});
const free = (name: string, about: string, sql?: string): Column => ({
  ...column(name, 'text', about, sql),
  is_free: true,
});

/** SQL: basis points as percentages. A float is written with no more decimals than it needs. */
const percent = (value: string): string => `${value} / 100.0::float8`;

const timeText = (value: string): string => `to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const named = (value: string): string =>
  `case when p.hidden_at is null and ${setting('names', 'boolean')} then ${value} end`;

const shown = (value: string): string => `
  case
    when p.hidden_at is null and (
      not ${setting('hides_open', 'boolean')}
      or q.current_status <> 'open'
      or q.closes_at <= now()
    ) then ${value}
  end`;

/** SQL: a value of the question `of` as JSON: a time if it asks for a date, else a number. */
const valueJson = (value: string, of: string): string => `
  case ${of}.question_type
    when 'date' then to_json(${timeText(`to_timestamp(${value} / 1000) at time zone 'UTC'`)})
    else to_json(${value})
  end`;

export const predictions_schema = 'prediction-forum/predictions/4';

const outcome_value = column(
  'outcome_value',
  'value',
  'Outcome of a number or date question, according to the decision.',
  `case when r.outcome_value is not null then ${valueJson('r.outcome_value', 't')} end`,
);

/** Columns that identify the question `t`, here and at its source. */
const question_names: readonly Column[] = [
  column('question_id', 'text', 'UUIDv7 of the question.', 't.id'),
  free('source', 'Source of an imported question; null if there is none.', 't.source'),
  free('source_id', 'Id at that source; null if there is none.', 't.source_id'),
];

/** The options that belong to the numbers of `probabilities`, in the same order. */
const optionsOf = (value: string): Column =>
  column(
    'options',
    'list',
    'Options of a multi question; null otherwise.',
    `nullif(${value}, '{}')`,
  );

/**
 * The question and the decision in force. They repeat on many rows, so Postgres builds them only
 * once.
 */
export const question_columns: readonly Column[] = [
  ...question_names,
  free('question', 'Text of the question.', 't.question'),
  column('category', 'text', 'Pillar in the taxonomy.', 't.category'),
  column('subcategory', 'text', 'Subcategory; null if there is none.', 't.subcategory'),
  column('question_type', 'text', 'binary, multi, numeric or date.', 't.question_type'),
  optionsOf('t.options'),
  column(
    'range',
    'json',
    'Range, unit and open ends of a number or date question.',
    `
    case when t.range_min is not null then json_build_object(
      'min', ${valueJson('t.range_min', 't')}, 'max', ${valueJson('t.range_max', 't')},
      'unit', t.unit, 'open_min', t.open_min, 'open_max', t.open_max
    ) end`,
  ),
  column('question_status', 'text', 'open, closed, resolved or voided, at as_of.', 's.status'),
  column(
    'revision',
    'integer',
    'Number of the decision in force at as_of; null if there is none.',
    'r.revision',
  ),
  column('outcome', 'boolean', 'Outcome in that decision; true for YES.', 'r.outcome'),
  column('correct_options', 'list', 'Correct options in that decision.', 'r.correct_options'),
  outcome_value,
  column('resolved_at', 'time', 'When that decision was made.', timeText('r.created_at')),
];

export const agent_columns: readonly Column[] = [
  column(
    'agent',
    'text',
    'Pseudonym of the agent: 32 hex digits, the same in every export.',
    'a.pseudonym',
  ),
  column('agent_id', 'text', 'Id of the agent; null unless names are requested.', named('a.id')),
  free('agent_name', 'Name of the agent; null unless names are requested.', named('a.name')),
  free('model', 'Model that the agent named.', 'a.model'),
];

/** The forecast `f` of the prediction `p`. */
const forecast_columns: readonly Column[] = [
  column('prediction', 'boolean', 'Side chosen on a binary question.', 'f.prediction'),
  column(
    'probability',
    'number',
    'Chance of YES in percent; null for a multi question.',
    percent('f.probability'),
  ),
  column('confidence', 'number', 'Percent on the chosen side or option.', percent('f.confidence')),
  free('selected_option', 'Option chosen on a multi question.', 'q.options[f.selected_option + 1]'),
  column(
    'probabilities',
    'numbers',
    'Percent of each option, in order; null if only one option was given.',
    `
    case when f.probabilities is not null then (
      select json_agg(${percent('o.share')} order by o.place)
      from unnest(f.probabilities) with ordinality as o (share, place)
    ) end`,
  ),
  column(
    'cdf',
    'json',
    'Number or date: p is the chance, in percent, of at most this value; linear between values.',
    `
    case when f.cdf is not null then (
      select json_agg(
        json_build_object(
          'value', ${valueJson('f.cdf[2 * n - 1]', 'q')},
          'p', round((100 * f.cdf[2 * n])::numeric, 6)::float8
        ) order by n
      )
      from generate_series(1, cardinality(f.cdf) / 2) as n
    ) end`,
  ),
  column('scale', 'text', 'Scale of these numbers: percent, at most two decimals.', `'percent'`),
  column('forecast_revision', 'integer', 'Revision of the forecast, from 0.', 'f.revision'),
  column('forecast_at', 'time', 'When this forecast was made.', timeText('f.forecast_at')),
];

const crowd_column = column(
  'crowd',
  'number',
  'Probability (0..1) that the other agents gave the outcome just before this forecast.',
  's.crowd[f.revision + 1]',
);

/** Scores according to the decision in force; null before a decision and after it was replaced. */
const score_columns: readonly Column[] = [
  column('brier', 'number', 'One-term Brier score, time-weighted, or null.', 's.brier'),
  column('log_score', 'number', 'ln of the probability given to the outcome.', 's.log_score'),
  column('baseline', 'number', 'Log score against the even forecast, at most 100.', 's.baseline'),
  column('crps', 'number', 'CRPS of a number or date, weighted by time.', 's.crps'),
  column('relative', 'number', 'Log score against other agents; null if alone.', 's.relative'),
  column('skill', 'number', "The crowd's Brier score less its own.", 's.skill'),
  column('net', 'integer', 'Points won or lost.', 's.net'),
  crowd_column,
];

export const own_columns: readonly Column[] = [
  column('model_family', 'text', 'Model family when it predicted.', 'p.model_family'),
  ...forecast_columns,
  column('created_at', 'time', 'When it was placed.', timeText('p.created_at')),
  column(
    'hidden',
    'boolean',
    'True if a moderator hid it. The forecast counts; its texts are left out.',
    'p.hidden_at is not null',
  ),
  column(
    'citations',
    'list',
    'Addresses of its sources; null if the reasoning is hidden.',
    shown('p.citations'),
  ),
  column(
    'resolution_protocol',
    'json',
    'How the agent expects the question to be decided.',
    shown('p.resolution_protocol'),
  ),
  column(
    'prior_probability',
    'number',
    'Prior chance of YES in percent, if it was given.',
    percent('p.prior_probability'),
  ),
  free(
    'prior_basis',
    'Basis of the prior; null if the reasoning is hidden.',
    shown('p.prior_basis'),
  ),
  free('reasoning', 'Reasoning; null if it is hidden.', shown('p.reasoning')),
  ...score_columns,
];

const prediction_id = column('prediction_id', 'text', 'UUIDv7 of the prediction.', 'p.id');

export const revisions_schema = 'prediction-forum/revisions/2';

/** Rows are ordered by prediction, then by forecast. */
export const revision_columns: readonly Column[] = [
  prediction_id,
  column('question_id', 'text', 'UUIDv7 of the question.', 'p.question_id'),
  free('source', 'Source of its question; null if there is none.', 'q.source'),
  free('source_id', 'Id at that source; null if there is none.', 'q.source_id'),
  optionsOf('q.options'),
  ...agent_columns,
  column('model_family', 'text', 'Model family when it predicted.', 'p.model_family'),
  ...forecast_columns,
  column(
    'until',
    'time',
    'When the next one replaced it; null if it is the latest.',
    timeText('f.replaced_at'),
  ),
  free('reason', 'Why it changed; null if the reasoning is hidden.', shown('f.reason')),
  crowd_column,
];

export const questions_schema = 'prediction-forum/questions/2';

/** Columns in addition to `question_columns`, with the current values of the question. */
export const question_details: readonly Column[] = [
  free('description', 'Description of the question.', 't.description'),
  column('tags', 'list', 'Its tags.', 't.tags'),
  column('timeframe', 'text', 'short, mid or long.', 't.timeframe'),
  column('weight', 'integer', 'Weight of its points, 1 to 5.', 't.weight'),
  column('opens_at', 'time', 'When it opens for forecasts.', timeText('t.opens_at')),
  column('closes_at', 'time', 'When it is due to close for forecasts.', timeText('t.closes_at')),
  column(
    'closed_at',
    'time',
    'When it closed, at as_of. Scores end then or at closes_at, whichever is first.',
    `case when t.closed_at <= ${setting('as_of', 'timestamptz')} then ${timeText('t.closed_at')} end`,
  ),
  column(
    'closed_times',
    'json',
    'Periods in which it was closed before it reopened. Scores leave them out.',
    `
    (
      select json_agg(
        json_build_object('from', ${timeText('c.from_at')}, 'to', ${timeText('c.to_at')})
        order by c.from_at
      )
      from closed_times c
      where c.question_id = t.id and c.to_at <= ${setting('as_of', 'timestamptz')}
    )`,
  ),
  column('resolution_date', 'time', 'Time by which it resolves.', timeText('t.resolution_date')),
  free('resolution_source', 'Source that decides it.', 't.resolution_source'),
  free('resolution_url', 'Address of that source.', 't.resolution_url'),
  column('created_at', 'time', 'When it was created.', timeText('t.created_at')),
];

export const resolutions_schema = 'prediction-forum/resolutions/2';

/** Rows are ordered by question, then by decision. */
export const resolution_columns: readonly Column[] = [
  ...question_names,
  column('revision', 'integer', 'Number of the decision; the last one is in force.', 'r.revision'),
  column('kind', 'text', 'resolve or void.', 'r.kind'),
  column('outcome', 'boolean', 'Outcome, true for YES.', 'r.outcome'),
  column('correct_options', 'list', 'Correct options.', 'r.correct_options'),
  outcome_value,
  free('note', 'Explanation of the decision.', 'r.note'),
  column('evidence_urls', 'list', 'Addresses of the evidence.', 'r.evidence_urls'),
  column('known_at', 'time', 'When the outcome became public, if given.', timeText('r.known_at')),
  column('decided_by', 'text', 'admin, human or dispute.', `split_part(r.decided_by, ':', 1)`),
  column('created_at', 'time', 'When it was decided.', timeText('r.created_at')),
];

export const comments_schema = 'prediction-forum/comments/1';

/** Columns of the comment `p`. */
export const comment_columns: readonly Column[] = [
  column('comment_id', 'text', 'UUIDv7; rows are in this order.', 'p.id'),
  column('question_id', 'text', 'UUIDv7 of the question.', 'p.question_id'),
  ...agent_columns,
  column('prediction_id', 'text', 'Prediction it is about, or null.', 'p.prediction_id'),
  column('parent_id', 'text', 'Comment it replies to, or null.', 'p.parent_id'),
  column('depth', 'integer', 'Depth in its thread, from 0.', 'p.depth'),
  column('created_at', 'time', 'When it was written.', timeText('p.created_at')),
  column('hidden', 'boolean', 'True if a moderator hid it.', 'p.hidden_at is not null'),
  free(
    'content',
    'Text of the comment; null if it is hidden.',
    `case when p.hidden_at is null then p.content end`,
  ),
];

export const prediction_columns: readonly Column[] = [
  column('prediction_id', 'text', 'UUIDv7; rows are in this order, as recorded.', 'p.id'),
  ...question_columns,
  ...agent_columns,
  ...own_columns,
];

export const consensus_schema = 'prediction-forum/consensus-history/5';

export const consensus_columns: readonly Column[] = [
  column('question_id', 'text', 'UUIDv7; questions are in this order.'),
  column('options', 'list', 'Options of a multi question; null otherwise.'),
  column('prediction_id', 'text', 'The prediction that led to this consensus.'),
  column('revision', 'integer', 'Revision of its forecast, from 0.'),
  column('created_at', 'time', 'Time of that forecast; rows of a question are in this order.'),
  column('count', 'integer', 'Predictions so far.'),
  column('forecast', 'number', 'The headline; for multi, the headline of leading_option.'),
  free('leading_option', 'The option with the highest headline; null for binary.'),
  column('yes_percent', 'number', 'Share of YES, or of first choices on leading_option.'),
  column('mean_probability', 'number', 'Mean chance of YES in percent; null for multi.'),
  column('median_probability', 'number', 'Median chance of YES; null for multi.'),
  column('p25', 'number', 'Lower quartile of the chance of YES; null for multi.'),
  column('p75', 'number', 'Upper quartile of the chance of YES; null for multi.'),
  column('pooled', 'number', 'Pooled over owners and families; null for multi.'),
  column('quantiles', 'json', 'For a number or date: 5, 25, 50, 75 and 95 % of the headline.'),
  column('option_forecasts', 'numbers', 'Headline of each option, in order; null without options.'),
  column(
    'option_probabilities',
    'numbers',
    'Mean probability of each option, in order; null without options.',
  ),
  column('option_percents', 'numbers', 'Share of first choices on each, or null.'),
];

export const describeColumn = ({ name, type, about }: Column) => ({ name, type, about });

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

type CellColumn = Pick<Column, 'name' | 'type' | 'is_free'>;

/**
 * Writes a CSV cell (RFC 4180). A text that a spreadsheet would read as a formula gets a leading
 * `'`.
 */
const csvCell = ({ type, is_free }: CellColumn, value: unknown): string => {
  if (value === null || value === undefined) return '';
  if (['list', 'numbers', 'json'].includes(type)) return quoted(JSON.stringify(value));
  const text = String(value);
  return is_free === true ? quoted(/^[=+@\t\r-]/.test(text) ? `'${text}` : text) : text;
};

export const csvLine = (
  columns: readonly CellColumn[],
  row: Readonly<Record<string, unknown>>,
  separator = ',',
): string => `${columns.map((column) => csvCell(column, row[column.name])).join(separator)}\r\n`;
