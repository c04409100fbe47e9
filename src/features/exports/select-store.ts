import {
  agent_columns,
  type Column,
  own_columns,
  prediction_columns,
  question_columns,
} from './columns.js';
import { type Settings, setting } from './copy-store.js';

/**
 * The statements of exports: each selects one line of text a row. Their values are settings
 * (`settingsOf`), never part of the text.
 */

export type LineKind = 'json' | 'csv';

/** What an export contains: the same ask has the same rows for ever (hidden texts aside). */
export interface ExportAsk {
  /** Recorded before this id. */
  readonly below: string;
  /** Made, and resolved, up to this time; ISO 8601. */
  readonly as_of: string;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly question_id?: string | undefined;
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly model_family?: string | undefined;
  readonly status?: string | undefined;
  /** Whether agents are told by name. */
  readonly names: boolean;
}

export const settingsOf = (ask: ExportAsk): Settings =>
  Object.fromEntries(
    Object.entries(ask).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value]] : [],
    ),
  );

const as_of = setting('as_of', 'timestamptz');

const filters: Readonly<Partial<Record<keyof ExportAsk, string>>> = {
  since: `p.created_at >= ${setting('since', 'timestamptz')}`,
  until: `p.created_at < ${setting('until', 'timestamptz')}`,
  question_id: `p.question_id = ${setting('question_id', 'uuid')}`,
  model_family: `p.model_family = ${setting('model_family', 'text')}`,
  category: `t.category = ${setting('category', 'text')}`,
  subcategory: `t.subcategory = ${setting('subcategory', 'text')}`,
  status: `q.status = ${setting('status', 'text')}`,
};

const filtersOf = (ask: ExportAsk, names: readonly (keyof ExportAsk)[]): string =>
  names.map((name) => (ask[name] === undefined ? '' : `and ${filters[name]}`)).join(' ');

const predictionFilters = (ask: ExportAsk): string => `
  p.id < ${setting('below', 'uuid')}
  and p.created_at <= ${as_of}
  ${filtersOf(ask, ['since', 'until', 'question_id', 'model_family'])}`;

/** SQL of each value, by the name of its column. */
type Values = Readonly<Record<string, string>>;

const timeText = (value: string): string => `to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** RFC 4180; a text that a spreadsheet would take for a formula gets a `'` in front. */
const csvCell = ({ type, is_free }: Column, value: string): string => {
  const quoted = (text: string): string => `replace(${text}, '"', '""') || '"'`;
  if (is_free === true) {
    const shield = `case when ${value} ~ '^[=+@\\t\\r-]' then '"''' else '"' end`;
    return `${shield} || ${quoted(value)}`;
  }
  if (type === 'list') return `'"' || ${quoted(`to_json(${value})::text`)}`;
  if (type === 'object' || type === 'json') return `'"' || ${quoted(`(${value})::text`)}`;
  return `(${value})::text`;
};

const jsonMember = ({ name, type, is_free }: Column, value: string): string => {
  const is_plain = type === 'time' || (type === 'text' && is_free !== true);
  if (is_plain) return `'"${name}":', coalesce('"' || (${value})::text || '"', 'null')`;
  const is_text = type === 'text' || type === 'list';
  const json = is_text ? `to_json(${value})::text` : `(${value})::text`;
  return `'"${name}":', coalesce(${json}, 'null')`;
};

/**
 * Arguments of the `concat` that writes cells one behind the other: `row_to_json` takes twice the
 * time, as it looks up every type anew for every row.
 */
const cells = (kind: LineKind, columns: readonly Column[], values: Values): string => {
  const cell = kind === 'csv' ? csvCell : jsonMember;
  return columns.map((column) => cell(column, values[column.name] ?? 'null')).join(", ',', ");
};

const questionValues: Values = {
  question_id: 't.id',
  question: 't.question',
  category: 't.category',
  subcategory: 't.subcategory',
  question_type: 't.question_type',
  options: `nullif(t.options, '{}')`,
  question_status: 's.status',
  revision: 'r.revision',
  outcome: 'r.outcome',
  correct_options: 'r.correct_options',
  resolved_at: timeText('r.created_at'),
};

const agentValues = (names: boolean): Values => {
  const named = (value: string): string =>
    names ? `case when p.hidden_at is null then ${value} end` : 'null::text';
  return {
    agent: 'a.pseudonym',
    agent_id: named('a.id'),
    agent_name: named('a.name'),
    model: 'a.model',
  };
};

const ownValues = (hides_open: boolean): Values => {
  const is_shown = hides_open
    ? `p.hidden_at is null and (q.current_status <> 'open' or q.closes_at <= now())`
    : 'p.hidden_at is null';
  const shown = (column: string): string => `case when ${is_shown} then p.${column} end`;
  return {
    prediction_id: 'p.id',
    model_family: 'p.model_family',
    prediction: 'p.prediction',
    probability: 'p.probability',
    confidence: 'p.confidence',
    selected_option: 'q.options[p.selected_option + 1]',
    probabilities: `
      case when p.probabilities is not null then (
        select json_object_agg(o.option, p.probabilities[o.place] order by o.place)
        from unnest(q.options) with ordinality as o (option, place)
      ) end`,
    created_at: timeText('p.created_at'),
    hidden: 'p.hidden_at is not null',
    citations: shown('citations'),
    resolution_protocol: shown('resolution_protocol'),
    prior_probability: 'p.prior_probability',
    prior_basis: shown('prior_basis'),
    reasoning: shown('reasoning'),
  };
};

export interface PredictionSelect {
  readonly ask: ExportAsk;
  readonly kind: LineKind;
  /** HIDE_REASONING: the reasoning of open questions is left out. */
  readonly hides_open: boolean;
}

const first_columns = prediction_columns.slice(0, 1);

/**
 * `offset 0` keeps question and agent of a prediction apart, so that Postgres makes their cells
 * once and remembers them, and reads the predictions in the order of their ids.
 */
export const selectPredictions = ({ ask, kind, hides_open }: PredictionSelect): string => {
  const [open, close] = kind === 'json' ? ['{', '}'] : ['', ''];
  const own = ownValues(hides_open);
  return `
    select concat(
      '${open}', ${cells(kind, first_columns, own)}, ',', q.cells, ',', a.cells, ',',
      ${cells(kind, own_columns, own)}, '${close}'
    ) as line
    from predictions p
    cross join lateral (
      select
        t.options, t.status as current_status, t.closes_at, s.status,
        concat(${cells(kind, question_columns, questionValues)}) as cells
      from questions t
      left join lateral (
        select d.revision, d.kind, d.outcome, d.correct_options, d.created_at
        from resolutions d
        where d.question_id = t.id and d.created_at <= ${as_of}
        order by d.revision desc
        limit 1
      ) r on true
      cross join lateral (
        select case
          when r.kind = 'void' then 'voided'
          when r.kind = 'resolve' then 'resolved'
          when t.closed_at <= ${as_of} then 'closed'
          else 'open'
        end as status
      ) s
      where t.id = p.question_id and t.status <> 'draft'
        ${filtersOf(ask, ['category', 'subcategory'])}
      offset 0
    ) q
    cross join lateral (
      select concat(${cells(kind, agent_columns, agentValues(ask.names))}) as cells
      from agents a
      where a.id = p.agent_id
      offset 0
    ) a
    where ${predictionFilters(ask)} ${filtersOf(ask, ['status'])}
    order by p.id`;
};

/**
 * What was stated on each question, in the order in which it was, as JSON. The owner stands for
 * agents of one person and never leaves this process.
 */
export const selectStated = (ask: ExportAsk): string => `
  select json_build_object(
    'question_id', p.question_id,
    'question_type', t.question_type,
    'options', t.options,
    'prediction_id', p.id,
    'at', floor(extract(epoch from p.created_at) * 1000)::float8,
    'family', p.model_family,
    'owner', coalesce(p.owner_id, p.agent_id),
    'side', coalesce(p.selected_option, p.prediction::integer),
    'value', coalesce(p.probability, p.confidence),
    'probabilities', p.probabilities
  )::text as line
  from predictions p
  join questions t on t.id = p.question_id
  where ${predictionFilters(ask)}
    and t.status <> 'draft' ${filtersOf(ask, ['category', 'subcategory'])}
  order by p.question_id, p.created_at, p.id`;
