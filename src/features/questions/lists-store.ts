import type { Db, Fragment } from '../../db/client.js';
import { limitToPage, newestFirst, readTotal, timeKey } from '../../db/rows.js';
import { searchQuery } from '../../db/words.js';
import type { CursorKey, CursorKind, PageRequest } from '../../http/page.js';
import { tagOf } from '../taxonomy/rules.js';
import type { AdminListQuery, QuestionSort, QuestionStatus } from './schema.js';
import { type QuestionRow, questionColumns } from './store.js';

/**
 * Lists of questions. A page is read in two steps: first its ids and sort keys, which come from
 * indexes alone, then only its rows, which are wide. Every order ends with the id, so keys are
 * unique. If counters change between two pages, a question can change its position.
 */

export interface ListRequest {
  readonly filter: Omit<AdminListQuery, 'limit' | 'cursor' | 'offset' | 'sort' | 'include'>;
  readonly sort: QuestionSort;
  /** True if the list includes drafts, which only admins and the author may see. */
  readonly drafts: boolean;
}

export interface ListedRow extends QuestionRow {
  /** The sort key as the cursor contains it; null if the id alone is the key. */
  readonly sort_key: string | number | null;
}

/** The default sort is relevance for a search, else newest. A blank search is ignored. */
export const readListQuery = (
  query: ListRequest['filter'] & { readonly sort?: QuestionSort },
  drafts: boolean,
): ListRequest => {
  const { q, ...rest } = query;
  const is_search = q !== undefined && q.trim() !== '';
  const sort = query.sort ?? (is_search ? 'relevance' : 'newest');
  return { filter: is_search ? { ...rest, q } : rest, sort, drafts };
};

/** Two sorts imply a status, unless the query names a status. */
const statusOf = ({ filter, sort }: ListRequest): QuestionStatus | 'all' => {
  if (filter.status !== undefined) return filter.status;
  if (sort === 'closing_soon') return 'open';
  return sort === 'recently_resolved' ? 'resolved' : 'all';
};

/** A status with a partial index is a literal, because Postgres needs that to use the index. */
const isStatus = (db: Db, status: QuestionStatus | 'all') => {
  if (status === 'all') return db`true`;
  if (status === 'open') return db`q.status = 'open'`;
  return status === 'resolved' ? db`q.status = 'resolved'` : db`q.status = ${status}`;
};

/** A search finds at most this many questions, the newest. More match only a very common word. */
const max_found = 5_000;

const conditions = (db: Db, list: ListRequest) => {
  const { filter, sort, drafts } = list;
  const { category, subcategory, tag, question_type, timeframe, q, author_id } = filter;
  const { ids, source, source_id, created_after, closes_before } = filter;
  return db`
    ${isStatus(db, statusOf(list))}
    ${drafts ? db`` : db`and q.status <> 'draft'`}
    ${sort === 'recently_resolved' ? db`and q.status = 'resolved'` : db``}
    ${category === undefined ? db`` : db`and q.category = ${category}`}
    ${subcategory === undefined ? db`` : db`and q.subcategory = ${subcategory}`}
    ${tag === undefined ? db`` : db`and q.tags @> array[${tagOf(tag)}::text]`}
    ${question_type === undefined ? db`` : db`and q.question_type = ${question_type}`}
    ${timeframe === undefined ? db`` : db`and q.timeframe = ${timeframe}`}
    ${author_id === undefined ? db`` : db`and q.author_id = ${author_id.toLowerCase()}`}
    ${ids === undefined ? db`` : db`and q.id = any (${ids}::uuid[])`}
    ${source === undefined ? db`` : db`and q.source = ${source}`}
    ${source_id === undefined ? db`` : db`and q.source_id = ${source_id}`}
    ${created_after === undefined ? db`` : db`and q.created_at > ${new Date(created_after)}`}
    ${closes_before === undefined ? db`` : db`and q.closes_at < ${new Date(closes_before)}`}
    ${
      q === undefined
        ? db``
        : db`and q.id in (
            select * from newest_matches(
              ${searchQuery(db, q)}, ${db.unsafe(String(max_found))}, ${drafts ? db`true` : db`false`},
              false
            )
          )`
    }`;
};

interface Order {
  /** Type of the sort key in a cursor. Missing if the id alone is the key. */
  readonly kind?: 'time' | 'number';
  readonly is_ascending?: true;
  /** True if the key is computed from the counters. */
  readonly counts?: true;
  key(db: Db, list: ListRequest): Fragment;
}

const predictions = (db: Db) => db`coalesce(n.prediction_count, 0)`;

const orders: Readonly<Record<QuestionSort, Order>> = {
  newest: { key: (db) => db`null::integer` },
  closing_soon: { kind: 'time', is_ascending: true, key: (db) => db`q.closes_at` },
  recently_resolved: { kind: 'time', key: (db) => db`q.resolved_at` },
  most_predicted: { kind: 'number', counts: true, key: predictions },
  least_predicted: { kind: 'number', counts: true, is_ascending: true, key: predictions },
  contested: {
    kind: 'number',
    counts: true,
    key: (db) => db`
      case
        when n.question_id is null then 0
        when cardinality(n.option_counts) = 0 then contest_of(
          n.yes_count + n.no_count,
          greatest(n.yes_count, n.no_count),
          least(n.yes_count, n.no_count)
        )
        else (
          select contest_of(sum(o)::integer, max(o), (array_agg(o order by o desc))[2])
          from unnest(n.option_counts) as given (o)
        )
      end`,
  },
  relevance: {
    kind: 'number',
    key: (db, { filter: { q } }) =>
      q === undefined
        ? db`0`
        : db`(
            select round(1000000 * ts_rank(w.title, ${searchQuery(db, q)}))::integer
            from question_words w
            where w.question_id = q.id
          )`,
  },
};

export const kindsOf = (sort: QuestionSort): readonly CursorKind[] => {
  const { kind } = orders[sort];
  return kind === undefined ? ['id'] : [kind, 'id'];
};

export const keyOf = (row: ListedRow): CursorKey =>
  row.sort_key === null ? [row.id] : [row.sort_key, row.id];

const seekAfter = (db: Db, list: ListRequest, after: CursorKey | null) => {
  if (after === null) return db``;
  const { kind, is_ascending, key } = orders[list.sort];
  if (kind === undefined) return db`and q.id < ${after[0] as string}::uuid`;
  const [value, id] = after;
  // Sent as text, because a timestamptz parameter would lose the microseconds.
  const bound =
    kind === 'time'
      ? db`(${value as string}::text::timestamptz, ${id as string}::uuid)`
      : db`(${value as number}::integer, ${id as string}::uuid)`;
  return is_ascending === true
    ? db`and (${key(db, list)}, q.id) > ${bound}`
    : db`and (${key(db, list)}, q.id) < ${bound}`;
};

/** The key for the cursor, to the microsecond. Otherwise a row could repeat on the next page. */
const shownKey = (db: Db, sort: QuestionSort) =>
  orders[sort].kind === 'time' ? timeKey(db, db`keys.key`) : db`keys.key`;

/** By relevance, only the newest matches are ranked: a common word matches most questions. */
const max_ranked = 1_000;

/** The rows that are sorted: the questions of the list, and `where` with the rest of the conditions. */
const listed = (db: Db, list: ListRequest, after: CursorKey | null) =>
  list.sort === 'relevance' && list.filter.q !== undefined
    ? db`
      from (
        select q.id
        from questions q
        where ${conditions(db, list)}
        order by q.id desc
        limit ${db.unsafe(String(max_ranked))}
      ) q
      where true ${seekAfter(db, list, after)}`
    : db`
      from questions q
      ${orders[list.sort].counts === true ? db`left join question_counts n on n.question_id = q.id` : db``}
      where ${conditions(db, list)} ${seekAfter(db, list, after)}`;

/** Returns one row more than the page, so that the caller knows whether a next page exists. */
export const listQuestions = async (
  db: Db,
  list: ListRequest,
  page: PageRequest,
): Promise<readonly ListedRow[]> => {
  const { is_ascending, key } = orders[list.sort];
  const direction = is_ascending === true ? db`asc` : db`desc`;
  return db<ListedRow[]>`
    with keys as materialized (
      select q.id, ${key(db, list)} as key
      ${listed(db, list, page.after)}
      order by 2 ${direction}, 1 ${direction}
      ${limitToPage(db, page)}
    )
    select ${questionColumns(db)}, ${shownKey(db, list.sort)} as sort_key
    from keys
    join questions q on q.id = keys.id
    left join question_counts c on c.question_id = keys.id
    order by keys.key ${direction}, keys.id ${direction}`;
};

export const countQuestions = (db: Db, list: ListRequest) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total
    from questions q
    where ${conditions(db, list)}`);

/** An agent, or a human with all the agents that they own. */
type Author = { readonly kind: 'agent' | 'human'; readonly id: string };

const suggestedBy = (db: Db, { kind, id }: Author) =>
  kind === 'agent'
    ? db`q.author_id = ${id}`
    : db`q.author_id in (select id from agents where owner_id = ${id})`;

interface SuggestedRow extends QuestionRow {
  readonly author: { readonly id: string; readonly name: string };
}

/** Lists suggestions in every status, newest first. Rejected suggestions are deleted. */
export const listSuggestions = (db: Db, author: Author, page: PageRequest) =>
  db<SuggestedRow[]>`
    select ${questionColumns(db)}, json_build_object('id', a.id, 'name', a.name) as author
    from questions q
    join agents a on a.id = q.author_id
    left join question_counts c on c.question_id = q.id
    where ${suggestedBy(db, author)}
      ${newestFirst(db, 'q.id', page)}`;

export const countSuggestions = (db: Db, author: Author) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total from questions q where ${suggestedBy(db, author)}`);
