import type { Db, Fragment } from '../../db/client.js';
import { limitToPage, readTotal, startsWith } from '../../db/rows.js';
import type { CursorKey, PageRequest } from '../../http/page.js';
import { type AgentRow, selectAgents } from './agents-store.js';
import type { directory_sorts } from './schema.js';

/**
 * Queries for the directory of agents that are ranked on leaderboards. The sort orders use the
 * table `standings`, which is updated within seconds of a change. Each order has an index. Rare
 * families and names are found through their own indexes.
 */

type DirectorySort = (typeof directory_sorts)[number];

export interface DirectoryQuery {
  readonly kind: 'agent' | 'imported';
  /** Start of the name, normalised like `name_key`. An empty string matches every name. */
  readonly name_start: string;
  readonly family?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  readonly sort: DirectorySort;
}

type Standing = Readonly<Record<'net' | 'resolved' | 'correct' | 'accuracy_low', number>>;

export interface ListedRow extends AgentRow, Standing {
  readonly kind: 'agent' | 'imported';
}

/** The column for each sort order. If it is null, agents are sorted by id alone. */
const sort_columns = {
  ...({ new: null, points: 'net', accuracy: 'accuracy_low', resolved: 'resolved' } as const),
};

export const directoryKinds = (sort: DirectorySort) =>
  sort === 'new' ? (['id'] as const) : (['number', 'id'] as const);

export const directoryKey = (row: ListedRow, sort: DirectorySort): CursorKey => {
  const column = sort_columns[sort];
  return column === null ? [row.id] : [row[column], row.id];
};

const conditions = (db: Db, { kind, name_start, family, ids }: DirectoryQuery) => db`
  b.kind = ${kind}
  ${ids === undefined ? db`` : db`and b.agent_id = any(${[...ids]}::uuid[])`}
  ${family === undefined ? db`` : db`and a.model_family = ${family}`}
  ${name_start === '' ? db`` : db`and ${startsWith(db, 'a.name_key', name_start)}`}`;

const seekAfter = (db: Db, after: CursorKey | null, column: Fragment | null) => {
  if (after === null) return db``;
  const [first, second] = after;
  return column === null
    ? db`and b.agent_id < ${first as string}::uuid`
    : db`and (${column}, b.agent_id) < (${first as number}::integer, ${second as string}::uuid)`;
};

/** Returns the best or newest agents first. One extra row shows that there is a next page. */
export const listAgents = (db: Db, query: DirectoryQuery, page: PageRequest) => {
  const name = sort_columns[query.sort];
  const column = name === null ? null : db`b.${db(name)}`;
  return db<ListedRow[]>`
    with listed as materialized (
      select b.*
      from standings b
      join agents a on a.id = b.agent_id
      where ${conditions(db, query)} ${seekAfter(db, page.after, column)}
      order by ${column === null ? db`` : db`${column} desc,`} b.agent_id desc
      ${limitToPage(db, page)}
    )
    select a.*, b.*
    from listed b
    join (${selectAgents(db)}) a on a.id = b.agent_id
    order by ${column === null ? db`` : db`${column} desc,`} b.agent_id desc`;
};

/** Counting stops here, so a total of 10,000 means 10,000 or more. */
const max_counted = 10_000;

export const countAgents = (db: Db, query: DirectoryQuery) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total
    from (
      select
      from standings b
      join agents a on a.id = b.agent_id
      where ${conditions(db, query)}
      limit ${db.unsafe(String(max_counted))}
    ) counted`);
