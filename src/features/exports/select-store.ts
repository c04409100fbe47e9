import {
  agent_columns,
  type Column,
  comment_columns,
  own_columns,
  prediction_columns,
  question_columns,
  question_details,
  resolution_columns,
  revision_columns,
} from './columns.js';
import { type Selected, setting } from './copy-store.js';

/**
 * The statements of exports. Their values are settings of the transaction, and never part of the
 * text. Aliases: p is a prediction or comment, f one of its forecasts, s its scores, t its
 * question, r the decision in force on that question, and a the agent.
 */

/**
 * Determines the content of an export. The same scope always selects the same rows, except for
 * hidden texts.
 */
export interface ExportScope {
  /** Only rows that were recorded before this id. */
  readonly below?: string | undefined;
  /** Only rows that were made, and outcomes that were decided, up to this time (ISO 8601). */
  readonly as_of: string;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly question_id?: string | undefined;
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly model_family?: string | undefined;
  readonly status?: string | undefined;
  readonly names: boolean;
  /** Set by HIDE_REASONING: leaves out the reasoning of open questions. */
  readonly hides_open: boolean;
}

const selected = (scope: ExportScope, select: string): Selected => ({
  select,
  settings: Object.fromEntries(
    Object.entries(scope).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    ),
  ),
});

const as_of = setting('as_of', 'timestamptz');

const filters = {
  below: `p.id < ${setting('below', 'uuid')}`,
  since: `p.created_at >= ${setting('since', 'timestamptz')}`,
  until: `p.created_at < ${setting('until', 'timestamptz')}`,
  question_id: `p.question_id = ${setting('question_id', 'uuid')}`,
  model_family: `p.model_family = ${setting('model_family', 'text')}`,
  category: `t.category = ${setting('category', 'text')}`,
  subcategory: `t.subcategory = ${setting('subcategory', 'text')}`,
  status: `q.status = ${setting('status', 'text')}`,
} as const;

const filtersOf = (scope: ExportScope, names: readonly (keyof typeof filters)[]): string =>
  names.map((name) => (scope[name] === undefined ? '' : `and ${filters[name]}`)).join(' ');

const ofPredictions = (scope: ExportScope): string => `
  p.created_at <= ${as_of}
  ${filtersOf(scope, ['below', 'since', 'until', 'question_id', 'model_family'])}`;

const ofQuestions = (scope: ExportScope): string =>
  `t.status <> 'draft' ${filtersOf(scope, ['category', 'subcategory'])}`;

const decision = `
  lateral (
    select d.revision, d.kind, d.outcome, d.correct_options, d.outcome_value, d.created_at
    from resolutions d
    where d.question_id = t.id and d.created_at <= ${as_of}
    order by d.revision desc
    limit 1
  ) r`;

const jsonMember = ({ name, type, is_free, sql }: Column): string => {
  const is_plain = type === 'time' || (type === 'text' && is_free !== true);
  if (is_plain) return `'"${name}":', coalesce('"' || (${sql})::text || '"', 'null')`;
  const is_text = type === 'text' || type === 'list';
  const json = is_text ? `to_json(${sql})::text` : `(${sql})::text`;
  return `'"${name}":', coalesce(${json}, 'null')`;
};

/** Returns the arguments of a `concat`. `row_to_json` would take twice as long. */
const members = (columns: readonly Column[]): string => columns.map(jsonMember).join(", ',', ");

const line = (...groups: readonly string[]): string =>
  `concat('{', ${groups.join(", ',', ")}, '}') as line`;

/** The status of the question at `as_of`. */
const question_status = `
  lateral (
    select case
      when r.kind = 'void' then 'voided'
      when r.kind = 'resolve' then 'resolved'
      when t.closed_at <= ${as_of} then 'closed'
      else 'open'
    end as status
  ) s`;

/**
 * The question of `p`. `agentOf` is the agent of `p`. `offset 0` keeps both as separate steps. So
 * Postgres builds and caches their members only once, and reads the rows of `p` in their own order.
 */
const questionOf = (scope: ExportScope): string => `
  lateral (
    select
      t.options, t.source, t.source_id, t.question_type, t.status as current_status, t.closes_at,
      s.status,
      case when r.kind = 'resolve' then r.revision end as revision,
      concat(${members(question_columns)}) as members
    from questions t
    left join ${decision} on true
    cross join ${question_status}
    where t.id = p.question_id and ${ofQuestions(scope)}
    offset 0
  ) q`;

const agentOf = `
  lateral (
    select concat(${members(agent_columns)}) as members
    from agents a
    where a.id = p.agent_id
    offset 0
  ) a`;

/** The scores of `p` according to the decision in force. */
const scoreOf = `
  scores s on s.question_id = p.question_id and s.agent_id = p.agent_id
    and s.revision = q.revision and s.settled_at <= ${as_of}`;

const stated = 'prediction, probability, confidence, selected_option, probabilities, cdf';

/** All forecasts of `p` that were made up to `as_of` and recorded before `below`. */
const forecastsOf = (scope: ExportScope): string => `
  from forecasts f
  where f.question_id = p.question_id
    and f.agent_id = p.agent_id
    and f.forecast_at <= ${as_of}
    ${scope.below === undefined ? '' : `and f.event_id < ${setting('below', 'uuid')}`}`;

/** The latest forecast of `forecastsOf`. Most predictions have only one. */
const forecastOf = (scope: ExportScope): string => `
  lateral (
    select p.revision, p.${stated.replaceAll(', ', ', p.')}, p.created_at as forecast_at
    where p.revision = 0
    union all
    (
      select f.revision, f.${stated.replaceAll(', ', ', f.')}, f.forecast_at
      ${forecastsOf(scope)} and p.revision > 0
      order by f.revision desc
      limit 1
    )
  ) f`;

/** Selects one line of JSON per prediction, with its latest forecast at `as_of`. */
export const selectPredictions = (scope: ExportScope): Selected =>
  selected(
    scope,
    `
    select ${line(members(prediction_columns.slice(0, 1)), 'q.members', 'a.members', members(own_columns))}
    from predictions p
    cross join ${questionOf(scope)}
    cross join ${agentOf}
    cross join ${forecastOf(scope)}
    left join ${scoreOf}
    where ${ofPredictions(scope)} ${filtersOf(scope, ['status'])}
    order by p.id`,
  );

/** Selects one line per forecast, including replaced ones. */
export const selectRevisions = (scope: ExportScope): Selected =>
  selected(
    scope,
    `
    select ${line(members(revision_columns))}
    from predictions p
    cross join ${questionOf(scope)}
    join agents a on a.id = p.agent_id
    cross join lateral (
      select f.*, lead(f.forecast_at) over (order by f.revision) as replaced_at
      ${forecastsOf(scope)}
    ) f
    left join ${scoreOf}
    where ${ofPredictions(scope)} ${filtersOf(scope, ['status'])}
    order by p.id, f.revision`,
  );

const ofPublished = (scope: ExportScope): string => `
  t.published_at <= ${as_of} and ${ofQuestions(scope)}
  ${scope.question_id === undefined ? '' : `and t.id = ${setting('question_id', 'uuid')}`}`;

/** Selects one line per question. */
export const selectQuestions = (scope: ExportScope): Selected =>
  selected(
    scope,
    `
    select ${line(members(question_columns), members(question_details))}
    from questions t
    left join ${decision} on true
    cross join ${question_status}
    where ${ofPublished(scope)} ${scope.status === undefined ? '' : `and s.status = ${setting('status', 'text')}`}
    order by t.id`,
  );

/** Selects one line per decision, including replaced ones. */
export const selectResolutions = (scope: ExportScope): Selected =>
  selected(
    scope,
    `
    select ${line(members(resolution_columns))}
    from resolutions r
    join questions t on t.id = r.question_id
    where r.created_at <= ${as_of} and ${ofPublished(scope)}
    order by r.question_id, r.revision`,
  );

/** Selects one line per comment or reply. */
export const selectComments = (scope: ExportScope): Selected =>
  selected(
    scope,
    `
    select ${line(members(comment_columns))}
    from comments p
    join questions t on t.id = p.question_id
    join agents a on a.id = p.agent_id
    where p.created_at <= ${as_of} ${filtersOf(scope, ['below', 'since', 'until'])}
      and ${ofPublished(scope)}
    order by p.id`,
  );

/**
 * Selects the forecasts of each question in order. The owner is used only in this process and never
 * exported.
 */
export const selectStated = (scope: ExportScope): Selected =>
  selected(
    scope,
    `
  select json_build_object(
    'question_id', p.question_id,
    'question_type', t.question_type,
    'options', t.options,
    'range_min', t.range_min,
    'range_max', t.range_max,
    'cdf', p.cdf,
    'replaced_cdf', lag(p.cdf) over (partition by p.id order by p.created_at, p.revision),
    'prediction_id', p.id,
    'revision', p.revision,
    'at', floor(extract(epoch from p.created_at) * 1000)::float8,
    'family', p.model_family,
    'agent', p.agent_id,
    'owner', coalesce(p.owner_id, p.agent_id),
    'side', coalesce(p.selected_option, p.prediction::integer, 0),
    'value', coalesce(p.probability, p.confidence),
    'probabilities', p.probabilities
  )::text as line
  from (select *, prediction_id as id, forecast_at as created_at from forecasts) p
  join questions t on t.id = p.question_id
  where ${ofPredictions(scope)} and ${ofQuestions(scope)}
  order by p.question_id, p.created_at, p.id, p.revision`,
  );

const group_keys = {
  all: `'all'`,
  family: 'p.model_family',
  category: 'q.category',
  agent: 'p.agent_id::text',
} as const;
type GroupKind = keyof typeof group_keys;
/** `taken`: the chosen side or option is correct. `yes`: a binary question resolves YES. */
type CalibrationEvent = 'taken' | 'yes';

const event_values: Readonly<Record<CalibrationEvent, string>> = {
  yes: 'f.probability as value, q.outcome as hit',
  taken: `
    f.confidence as value,
    coalesce(
      f.prediction = q.outcome,
      q.options[f.selected_option + 1] = any (q.correct_options)
    ) as hit`,
};

/** A probability, in basis points, that a group stated. A group has at most 10,001 of them. */
export interface CalibrationCell {
  readonly key: string;
  readonly value: number;
  readonly n: number;
  readonly hits: number;
}

/** Hidden predictions count, as in the scores. The outcome comes from the decision in force. */
export const selectCalibration = (
  scope: ExportScope,
  { by, event }: { readonly by: GroupKind; readonly event: CalibrationEvent },
): Selected =>
  selected(
    scope,
    `
  select key, value, count(*)::integer as n, (count(*) filter (where hit))::integer as hits
  from (
    select ${group_keys[by]} as key, ${event_values[event]}
    from (
      select t.id, t.category, t.options, r.outcome, r.correct_options
      from questions t
      join ${decision} on r.kind = 'resolve'
      where ${ofQuestions(scope)}
    ) q
    join predictions p on p.question_id = q.id
    cross join ${forecastOf(scope)}
    where ${ofPredictions(scope)} and f.cdf is null
  ) stated
  where value is not null
  group by key, value
  order by key, value`,
  );
