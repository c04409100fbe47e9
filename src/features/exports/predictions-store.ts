import type { Db, Fragment } from '../../kit/pg/client.js';
import {
  agent_marks,
  cells,
  decisionAt,
  type Expressions,
  type LineKind,
  statusAt,
  timeText,
} from './cells-store.js';
import { own_columns, prediction_columns } from './columns.js';

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

/** The question of a prediction at as_of; `offset 0` keeps it apart, so that it is read once. */
const questionOf = (db: Db, ask: PredictionAsk, made: Fragment) => {
  const { as_of, category, subcategory, status } = ask;
  return db`
    select ${made}
    from questions t
    ${status === undefined ? db`` : decisionAt(db, as_of)}
    where t.id = p.question_id
      and t.status <> 'draft'
      ${is(db, 't.category', category)}
      ${is(db, 't.subcategory', subcategory)}
      ${status === undefined ? db`` : db`and ${statusAt(db, as_of)} = ${status}`}
    offset 0`;
};

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
    created_at: timeText(db, db`p.created_at`),
    hidden: db`p.hidden_at is not null`,
    citations: db`case when ${says} then p.citations end`,
    resolution_protocol: db`case when ${says} then p.resolution_protocol end`,
    prior_probability: db`p.prior_probability`,
    prior_basis: db`case when ${says} then p.prior_basis end`,
    reasoning: db`case when ${says} then p.reasoning end`,
  };
};

const first_columns = prediction_columns.slice(0, 1);

/** Characters before the line: the id of the question, that of the agent, the mark of its name. */
export const key_lengths = { question: 36, agent: 37 } as const;

/** Bytes of a line before the cells of its question: those of the id of the prediction. */
export const head_lengths = {
  json: '{"prediction_id":"",'.length + 36,
  csv: 36 + ','.length,
} as const;

const line = (db: Db, { ask, privacy, kind }: PageAsk): Fragment => {
  const values = ownValues(db, privacy);
  const [open, close] = kind === 'json' ? ['{', '}'] : ['', ''];
  const { named, unnamed } = agent_marks;
  const mark = ask.names
    ? db`case when p.hidden_at is null then ${named}::text else ${unnamed}::text end`
    : db`${unnamed}::text`;
  return db`concat(
    p.question_id, p.agent_id, ${mark},
    ${open}::text, ${cells(db, kind, { list: first_columns, values })}, ',',
    ${cells(db, kind, { list: own_columns, values })}, ${close}::text
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

/**
 * Hands over the rows of a page, each good during the call only: the keys of the cells that are not
 * made here (`key_lengths`), and the line without them. Each is a row of Postgres of its own: one
 * text of all would be copied many times.
 */
export const readPage = async (
  db: Db,
  page: PageAsk,
  onRow: (row: Buffer) => void,
): Promise<void> => {
  const { ask, after, last } = page;
  const rows = await db`
    select ${line(db, page)} as line
    from predictions p
    cross join lateral (
      ${questionOf(db, ask, db`t.options, t.status, t.closes_at`)}
    ) q
    where p.id > ${after}::uuid and p.id <= ${last}::uuid and ${within(db, ask)}
    order by p.id`.raw();
  for (const [line] of rows as readonly [Buffer][]) onRow(line);
};

/** Rows of a page before filters. */
const page_rows = 1_000;

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
    where n % ${page_rows} = 0 or n = (select max(n) from numbered)
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
