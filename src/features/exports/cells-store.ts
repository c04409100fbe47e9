import type { Db, Fragment } from '../../kit/pg/client.js';
import { agent_columns, type Column, question_columns } from './columns.js';
import type { PredictionAsk, Privacy } from './predictions-store.js';

/**
 * Values of an export as text that Postgres makes, and those cells of a line that belong to its
 * question or its agent. These are the same on many lines, so they are read once for many pages.
 */

export type LineKind = 'json' | 'csv';
export type Expressions = Readonly<Record<string, Fragment>>;

export const timeText = (db: Db, value: Fragment): Fragment =>
  db`to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** RFC 4180; a text that a spreadsheet would take for a formula gets a `'` in front. */
const csvValue = (db: Db, { type, is_free }: Column, value: Fragment): Fragment => {
  if (is_free === true) {
    return db`
      '"' || case when ${value} ~ '^[=+@\\t\\r-]' then '''' else '' end
        || replace(${value}, '"', '""') || '"'`;
  }
  if (type === 'list') return db`'"' || replace(to_json(${value})::text, '"', '""') || '"'`;
  if (type === 'object' || type === 'json')
    return db`'"' || replace((${value})::text, '"', '""') || '"'`;
  return db`(${value})::text`;
};

const jsonValue = (db: Db, { type, is_free }: Column, value: Fragment): Fragment => {
  const is_plain = type === 'time' || (type === 'text' && is_free !== true);
  if (is_plain) return db`coalesce('"' || (${value})::text || '"', 'null')`;
  if (type === 'text' || type === 'list') return db`coalesce(to_json(${value}), 'null'::json)`;
  return db`coalesce((${value})::text, 'null')`;
};

/**
 * Arguments of the `concat` that writes cells one behind the other; the functions that make JSON of
 * a whole row look up every type anew for every row.
 */
export const cells = (
  db: Db,
  kind: LineKind,
  columns: { readonly list: readonly Column[]; readonly values: Expressions },
): Fragment => {
  const parts = columns.list.map((column, index) => {
    const value = columns.values[column.name] as Fragment;
    const comma = index === 0 ? '' : ',';
    return kind === 'csv'
      ? db`${comma}::text, ${csvValue(db, column, value)}`
      : db`${`${comma}"${column.name}":`}::text, ${jsonValue(db, column, value)}`;
  });
  return parts.reduce((made, next) => db`${made}, ${next}`);
};

/** The decision that held at as_of, of the question `t`. */
export const decisionAt = (db: Db, as_of: string): Fragment => db`
  left join lateral (
    select d.revision, d.kind, d.outcome, d.correct_options, d.created_at
    from resolutions d
    where d.question_id = t.id and d.created_at <= ${as_of}::timestamptz
    order by d.revision desc
    limit 1
  ) r on true`;

/** The status at as_of: by that decision, else by whether it had closed. */
export const statusAt = (db: Db, as_of: string): Fragment => db`
  case
    when r.kind = 'void' then 'voided'
    when r.kind = 'resolve' then 'resolved'
    when t.closed_at <= ${as_of}::timestamptz then 'closed'
    else 'open'
  end`;

const questionValues = (db: Db, as_of: string): Expressions => ({
  question_id: db`t.id`,
  question: db`t.question`,
  category: db`t.category`,
  subcategory: db`t.subcategory`,
  question_type: db`t.question_type`,
  options: db`nullif(t.options, '{}')`,
  question_status: statusAt(db, as_of),
  revision: db`r.revision`,
  outcome: db`r.outcome`,
  correct_options: db`r.correct_options`,
  resolved_at: timeText(db, db`r.created_at`),
});

const pseudonym = (db: Db, { inner_pad, outer_pad }: Privacy) => db`
  left(encode(sha256(
    ${outer_pad}::bytea || sha256(${inner_pad}::bytea || convert_to(a.id::text, 'UTF8'))
  ), 'hex'), 32)`;

const agentValues = (db: Db, privacy: Privacy, is_named: boolean): Expressions => ({
  agent: pseudonym(db, privacy),
  agent_id: is_named ? db`a.id` : db`null::text`,
  agent_name: is_named ? db`a.name` : db`null::text`,
  model: db`a.model`,
});

export interface CellsAsk {
  readonly ask: Pick<PredictionAsk, 'as_of'>;
  readonly privacy: Privacy;
  readonly kind: LineKind;
}

/** Cells by the key that a line names them with, each with a comma behind it. */
export type CellsByKey = ReadonlyMap<string, Buffer>;

/** Rows of a key and its cells. */
const collect = async (rows: Fragment): Promise<CellsByKey> => {
  const found = new Map<string, Buffer>();
  for (const [key, made] of (await rows.raw()) as readonly [Buffer, Buffer][]) {
    found.set(key.toString('latin1'), Buffer.from(made));
  }
  return found;
};

/** The keys are ids of questions. */
export const readQuestionCells = (
  db: Db,
  { ask, kind }: CellsAsk,
  keys: readonly string[],
): Promise<CellsByKey> => {
  const columns = { list: question_columns, values: questionValues(db, ask.as_of) };
  return collect(db`
    select t.id, concat(${cells(db, kind, columns)}, ',') as cells
    from questions t
    ${decisionAt(db, ask.as_of)}
    where t.id = any(${keys}::uuid[])`);
};

/** What follows the id of an agent in its key: whether its name is told. */
export const agent_marks = { named: 'n', unnamed: '-' } as const;

/** The keys are ids of agents, each with its mark. */
export const readAgentCells = (
  db: Db,
  { privacy, kind }: CellsAsk,
  keys: readonly string[],
): Promise<CellsByKey> => {
  const agentCells = (is_named: boolean): Fragment => {
    const columns = { list: agent_columns, values: agentValues(db, privacy, is_named) };
    return db`concat(${cells(db, kind, columns)}, ',')`;
  };
  return collect(db`
    select
      k.key,
      case
        when k.key like ${`%${agent_marks.named}`} then ${agentCells(true)}
        else ${agentCells(false)}
      end as cells
    from unnest(${keys}::text[]) as k (key)
    join agents a on a.id = left(k.key, 36)::uuid`);
};
