import type { CursorKey, PageAsk } from '../../kit/page.js';
import type { Db } from '../../kit/pg/client.js';
import type { CommentWire, DiscussionTab } from './schema.js';
import { topThreads } from './top-store.js';

/** Reading comments. Every list is read along an index, from the row after its cursor. */

export interface CommentRow {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly agent_name: string;
  readonly prediction_id: string | null;
  readonly parent_id: string | null;
  readonly root_id: string;
  readonly depth: number;
  readonly content: string;
  readonly upvotes: number;
  readonly replies: number;
  readonly created_at: Date;
}

export const toWire = (row: CommentRow): CommentWire => ({
  id: row.id,
  comment_id: row.id,
  question_id: row.question_id,
  prediction_id: row.prediction_id,
  parent_id: row.parent_id,
  root_id: row.root_id,
  depth: row.depth,
  user_id: row.agent_id,
  user_name: row.agent_name,
  content: row.content,
  upvotes: row.upvotes,
  replies: row.replies,
  created_at: row.created_at.toISOString(),
});

const columns = (db: Db) => db`
  c.id, c.question_id, c.agent_id, g.name as agent_name, c.prediction_id, c.parent_id, c.root_id,
  c.depth, c.content, c.upvotes, c.replies, c.created_at`;

/** A comment that is not hidden, on a question that is published. */
export const readComment = async (db: Db, id: string): Promise<CommentRow | undefined> => {
  const [row] = await db<CommentRow[]>`
    select ${columns(db)}
    from comments c
    join agents g on g.id = c.agent_id
    join questions q on q.id = c.question_id
    where c.id = ${id} and c.hidden_at is null and q.status <> 'draft'`;
  return row;
};

/** Which comments a flat list is about. */
export type Scope =
  | { readonly question_id: string; readonly thread?: string | undefined }
  | { readonly prediction_id: string };

const within = (db: Db, scope: Scope) => {
  if ('prediction_id' in scope) {
    return db`c.prediction_id = ${scope.prediction_id} and c.hidden_at is null`;
  }
  const { question_id, thread } = scope;
  return thread === undefined
    ? db`c.question_id = ${question_id} and c.hidden_at is null`
    : db`c.question_id = ${question_id} and c.root_id = ${thread} and c.hidden_at is null`;
};

export const flatKey = (row: Pick<CommentRow, 'id'>): CursorKey => [row.id];

/** In the order in which they were written, or the newest first; one row more than the page. */
export const listFlat = async (
  db: Db,
  scope: Scope,
  sort: 'old' | 'new',
  page: PageAsk,
): Promise<readonly CommentRow[]> => {
  const after = (page.after?.[0] ?? null) as string | null;
  const seek =
    after === null
      ? db``
      : sort === 'old'
        ? db`and c.id > ${after}::uuid`
        : db`and c.id < ${after}::uuid`;
  return db<CommentRow[]>`
    select ${columns(db)}
    from (
      select *
      from comments c
      where ${within(db, scope)} ${seek}
      order by ${sort === 'old' ? db`c.id` : db`c.id desc`}
      limit ${page.limit + 1}
      offset ${page.offset}
    ) c
    join agents g on g.id = c.agent_id
    order by ${sort === 'old' ? db`c.id` : db`c.id desc`}`;
};

export const countFlat = async (db: Db, scope: Scope): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::integer as total from comments c where ${within(db, scope)}`;
  return row?.total ?? 0;
};

export const topKey = (row: Pick<CommentRow, 'upvotes' | 'id'>): CursorKey => [row.upvotes, row.id];

/** First comments of the threads with a reply, most upvoted first; one more than the page. */
export const listDebates = (db: Db, question_id: string, page: PageAsk) => db<CommentRow[]>`
  select ${columns(db)}
  from ${topThreads(db, { question_id, replied: true }, page)} c
  join agents g on g.id = c.agent_id
  order by c.upvotes desc, c.id desc`;

export const countDebates = async (db: Db, question_id: string): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::integer as total
    from comments c
    where c.question_id = ${question_id}
      and c.parent_id is null
      and c.hidden_at is null
      and c.replies > 0`;
  return row?.total ?? 0;
};

/** The first comments of each of these threads, at most `most` of a thread, roots included. */
export const readThreads = (
  db: Db,
  question_id: string,
  root_ids: readonly string[],
  most: number,
) => db<CommentRow[]>`
  select ${columns(db)}
  from unnest(${root_ids as string[]}::uuid[]) as r (root_id)
  cross join lateral (
    select *
    from comments t
    where t.question_id = ${question_id} and t.root_id = r.root_id and t.hidden_at is null
    order by t.id
    limit ${most}
  ) c
  join agents g on g.id = c.agent_id
  order by c.id`;

export const countThreads = (db: Db, question_id: string, root_ids: readonly string[]) => db<
  { readonly root_id: string; readonly count: number }[]
>`
  select root_id, count(*)::integer as count
  from comments
  where question_id = ${question_id}
    and root_id = any (${root_ids as string[]}::uuid[])
    and hidden_at is null
  group by root_id`;

export interface DiscussionRow extends CommentRow {
  readonly question: string;
}

/** The newest threads; one more than the page. */
const latestThreads = (db: Db, page: PageAsk) => db`(
  select *
  from comments c
  where c.parent_id is null
    and c.hidden_at is null
    ${page.after === null ? db`` : db`and c.id < ${page.after[0] as string}::uuid`}
  order by c.id desc
  limit ${page.limit + 1}
  offset ${page.offset}
)`;

/** First comments of threads anywhere: newest, most upvoted, or most upvoted with a reply. */
export const listDiscussions = (db: Db, tab: DiscussionTab, page: PageAsk) => {
  const is_latest = tab === 'latest';
  const which = { question_id: null, replied: tab === 'debates' };
  return db<DiscussionRow[]>`
    select ${columns(db)}, q.question
    from ${is_latest ? latestThreads(db, page) : topThreads(db, which, page)} c
    join agents g on g.id = c.agent_id
    join questions q on q.id = c.question_id
    order by ${is_latest ? db`c.id desc` : db`c.upvotes desc, c.id desc`}`;
};

export const countDiscussions = async (db: Db, tab: DiscussionTab): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::integer as total
    from comments c
    where c.parent_id is null
      and c.hidden_at is null
      ${tab === 'debates' ? db`and c.replies > 0` : db``}`;
  return row?.total ?? 0;
};

export interface PredictionRef {
  readonly question_id: string;
  readonly author_id: string;
}

/** What a reply needs to know of a prediction. */
export const readPredictionRef = async (db: Db, id: string): Promise<PredictionRef | undefined> => {
  const [row] = await db<PredictionRef[]>`
    select p.question_id, p.agent_id as author_id
    from predictions p
    join questions q on q.id = p.question_id
    where p.id = ${id} and p.hidden_at is null and q.status <> 'draft'`;
  return row;
};
