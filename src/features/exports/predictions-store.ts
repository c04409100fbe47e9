import type { PendingQuery, Row } from 'postgres';
import type { Db } from '../../kit/pg/client.js';
import {
  agent_columns,
  type Column,
  own_columns,
  prediction_columns,
  question_columns,
} from './columns.js';

/**
 * Pages of predictions as text that Postgres makes: a row of a page never becomes an object here.
 * Each page is one short statement that begins behind the last id of the one before, so that a
 * reader holds nothing of Postgres between two pages, however slow it is.
 */

/** What an export contains: the same ask has the same rows for ever (hidden texts aside). */
export interface PredictionAsk {
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
  readonly names: boolean;
}

/** What stays the same for all exports of an installation. */
export interface Privacy {
  /** HMAC-SHA-256 (RFC 2104): the key padded to a block and crossed with 0x36 and 0x5c. */
  readonly inner_pad: Buffer;
  readonly outer_pad: Buffer;
  /** HIDE_REASONING: the reasoning of open questions is left out. */
  readonly hides_open: boolean;
}

export type LineKind = 'json' | 'csv';

type Fragment = PendingQuery<Row[]>;
type Expressions = Readonly<Record<string, Fragment>>;

const time = (db: Db, value: Fragment) => db`to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const pseudonym = (db: Db, { inner_pad, outer_pad }: Privacy) => db`
  left(encode(sha256(
    ${outer_pad}::bytea || sha256(${inner_pad}::bytea || convert_to(a.id::text, 'UTF8'))
  ), 'hex'), 32)`;

/** The status at as_of: by the decision that held, else by whether it had closed. */
const statusAt = (db: Db, as_of: string) => db`
  case
    when r.kind = 'void' then 'voided'
    when r.kind = 'resolve' then 'resolved'
    when t.closed_at <= ${as_of}::timestamptz then 'closed'
    else 'open'
  end`;

const is = (db: Db, column: string, value: string | undefined) =>
  value === undefined ? db`` : db`and ${db(column)} = ${value}`;

/** Of the predictions themselves. */
const within = (db: Db, ask: PredictionAsk) => {
  const { below, as_of, since, until, question_id, model_family } = ask;
  return db`
    p.id < ${below}::uuid
    and p.created_at <= ${as_of}::timestamptz
    ${since === undefined ? db`` : db`and p.created_at >= ${since}::timestamptz`}
    ${until === undefined ? db`` : db`and p.created_at < ${until}::timestamptz`}
    ${is(db, 'p.question_id', question_id)}
    ${is(db, 'p.model_family', model_family)}`;
};

/** The question of a prediction at as_of; `offset 0` keeps it apart, so that it is made once. */
const questionOf = (db: Db, ask: PredictionAsk, made: Fragment) => {
  const { as_of, category, subcategory, status } = ask;
  return db`
    select ${made}
    from questions t
    left join lateral (
      select d.revision, d.kind, d.outcome, d.correct_options, d.created_at
      from resolutions d
      where d.question_id = t.id and d.created_at <= ${as_of}::timestamptz
      order by d.revision desc
      limit 1
    ) r on true
    where t.id = p.question_id
      and t.status <> 'draft'
      ${is(db, 't.category', category)}
      ${is(db, 't.subcategory', subcategory)}
      ${status === undefined ? db`` : db`and ${statusAt(db, as_of)} = ${status}`}
    offset 0`;
};

const questionValues = (db: Db, ask: PredictionAsk): Expressions => ({
  question_id: db`t.id`,
  question: db`t.question`,
  category: db`t.category`,
  subcategory: db`t.subcategory`,
  question_type: db`t.question_type`,
  options: db`nullif(t.options, '{}')`,
  question_status: statusAt(db, ask.as_of),
  revision: db`r.revision`,
  outcome: db`r.outcome`,
  correct_options: db`r.correct_options`,
  resolved_at: time(db, db`r.created_at`),
});

const agentValues = (db: Db, privacy: Privacy, is_named: boolean): Expressions => ({
  agent: pseudonym(db, privacy),
  agent_id: is_named ? db`a.id` : db`null::text`,
  agent_name: is_named ? db`a.name` : db`null::text`,
  model: db`a.model`,
});

const ownValues = (db: Db, privacy: Privacy): Expressions => {
  const says = privacy.hides_open
    ? db`p.hidden_at is null and (q.status <> 'open' or q.closes_at <= now())`
    : db`p.hidden_at is null`;
  return {
    prediction_id: db`p.id`,
    model_family: db`p.model_family`,
    prediction: db`p.prediction`,
    probability: db`p.probability`,
    confidence: db`p.confidence`,
    selected_option: db`q.options[p.selected_option + 1]`,
    probabilities: db`
      case when p.probabilities is not null then (
        select json_object_agg(o.option, p.probabilities[o.place] order by o.place)
        from unnest(q.options) with ordinality as o (option, place)
      ) end`,
    stake: db`p.stake`,
    created_at: time(db, db`p.created_at`),
    hidden: db`p.hidden_at is not null`,
    citations: db`case when ${says} then p.citations end`,
    resolution_protocol: db`case when ${says} then p.resolution_protocol end`,
    prior_probability: db`p.prior_probability`,
    prior_basis: db`case when ${says} then p.prior_basis end`,
    reasoning: db`case when ${says} then p.reasoning end`,
  };
};

/** RFC 4180; a text that a spreadsheet would take for a formula gets a `'` in front. */
const csvValue = (db: Db, { type, is_free }: Column, value: Fragment): Fragment => {
  if (is_free === true) {
    return db`
      '"' || case when ${value} ~ '^[=+@\\t\\r-]' then '''' else '' end
        || replace(${value}, '"', '""') || '"'`;
  }
  if (type === 'list') return db`'"' || replace(to_json(${value})::text, '"', '""') || '"'`;
  if (type === 'object') return db`'"' || replace((${value})::text, '"', '""') || '"'`;
  return db`(${value})::text`;
};

const jsonValue = (db: Db, { type, is_free }: Column, value: Fragment): Fragment => {
  const is_plain = type === 'time' || (type === 'text' && is_free !== true);
  if (is_plain) return db`coalesce('"' || (${value})::text || '"', 'null')`;
  if (type === 'text' || type === 'list') return db`coalesce(to_json(${value})::text, 'null')`;
  return db`coalesce((${value})::text, 'null')`;
};

/**
 * Arguments of the `concat` that writes cells one behind the other; the functions that make JSON of
 * a whole row look up every type anew for every row.
 */
const cells = (db: Db, kind: LineKind, list: readonly Column[], values: Expressions): Fragment => {
  const parts = list.map((column, index) => {
    const value = values[column.name] as Fragment;
    const comma = index === 0 ? '' : ',';
    return kind === 'csv'
      ? db`${comma}::text, ${csvValue(db, column, value)}`
      : db`${`${comma}"${column.name}":`}::text, ${jsonValue(db, column, value)}`;
  });
  return parts.reduce((made, next) => db`${made}, ${next}`);
};

const first_columns = prediction_columns.slice(0, 1);

const line = (db: Db, kind: LineKind, { names }: PredictionAsk, privacy: Privacy): Fragment => {
  const own = ownValues(db, privacy);
  const [open, close] = kind === 'json' ? ['{', '}'] : ['', ''];
  const agent = names
    ? db`case when p.hidden_at is null then a.named_cells else a.cells end`
    : db`a.cells`;
  return db`concat(
    ${open}::text, ${cells(db, kind, first_columns, own)}, ',', q.cells, ',', ${agent}, ',',
    ${cells(db, kind, own_columns, own)}, ${close}::text
  )`;
};

export interface PageAsk {
  readonly ask: PredictionAsk;
  readonly privacy: Privacy;
  readonly kind: LineKind;
  /** Begins behind this id. */
  readonly after: string;
  /** Ends with this one. */
  readonly last: string;
}

/** The lines of a page. A line is a row of its own: one text of all would be copied many times. */
export const readPage = async (db: Db, page: PageAsk): Promise<readonly Buffer[]> => {
  const { ask, privacy, kind, after, last } = page;
  const question_cells = cells(db, kind, question_columns, questionValues(db, ask));
  const agentCells = (is_named: boolean): Fragment =>
    db`concat(${cells(db, kind, agent_columns, agentValues(db, privacy, is_named))})`;
  const question = db`t.options, t.status, t.closes_at, concat(${question_cells}) as cells`;
  const rows = await db`
    select ${line(db, kind, ask, privacy)} as line
    from predictions p
    cross join lateral (
      ${questionOf(db, ask, question)}
    ) q
    cross join lateral (
      select
        ${agentCells(false)} as cells
        ${ask.names ? db`, ${agentCells(true)} as named_cells` : db``}
      from agents a
      where a.id = p.agent_id
      offset 0
    ) a
    where p.id > ${after}::uuid and p.id <= ${last}::uuid and ${within(db, ask)}
    order by p.id`.raw();
  return (rows as unknown as [Buffer][]).map(([text]) => text);
};

/**
 * Last ids of the next pages behind an id, from an index alone: whatever the filters leave of it, a
 * page is short work. Empty at the end.
 */
export const readBounds = async (
  db: Db,
  { below, question_id }: PredictionAsk,
  after: string,
): Promise<readonly string[]> => {
  const rows = await db<{ id: string }[]>`
    with numbered as (
      select p.id, row_number() over (order by p.id) as n
      from predictions p
      where p.id > ${after}::uuid
        and p.id < ${below}::uuid
        ${is(db, 'p.question_id', question_id)}
      order by p.id
      limit 64000
    )
    select id
    from numbered
    where n % 2000 = 0 or n = (select max(n) from numbered)
    order by id`;
  return rows.map(({ id }) => id);
};

export const countRows = async (db: Db, ask: PredictionAsk): Promise<number> => {
  const [row] = await db<{ count: number }[]>`
    select count(*)::integer as count
    from predictions p
    cross join lateral (${questionOf(db, ask, db`t.id`)}) q
    where ${within(db, ask)}`;
  return row?.count ?? 0;
};
