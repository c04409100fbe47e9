import type { Db, Tx } from '../../db/client.js';
import type { CursorKey, PageAsk } from '../../http/page.js';
import type { Hidden } from '../predictions/index.js';
import type { CommentWire, DiscussionTab } from './schema.js';

/** Comments as they are read and hidden. Every list goes along an index from its cursor. */

/** As on the wire; the time becomes a text when it is written as JSON. */
export type CommentRow = Omit<CommentWire, 'created_at'> & { readonly created_at: Date };

const columns = (db: Db) => db`
  c.id, c.id as comment_id, c.question_id, c.prediction_id, c.parent_id, c.root_id, c.depth,
  c.agent_id as user_id, g.name as user_name, c.content, c.upvotes, c.replies, c.created_at`;

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

/** What a reply needs to know of a prediction. */
export const readPredictionRef = async (db: Db, id: string) => {
  const [row] = await db<{ readonly question_id: string; readonly author_id: string }[]>`
    select p.question_id, p.agent_id as author_id
    from predictions p
    join questions q on q.id = p.question_id
    where p.id = ${id} and p.hidden_at is null and q.status <> 'draft'`;
  return row;
};

const readTotal = async (query: PromiseLike<{ total: number }[]>): Promise<number> =>
  (await query)[0]?.total ?? 0;

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
  { after, limit, offset }: PageAsk,
): Promise<readonly CommentRow[]> => {
  const is_old = sort === 'old';
  const [id = null] = after ?? [];
  const seek = is_old ? db`and c.id > ${id}::uuid` : db`and c.id < ${id}::uuid`;
  const order = is_old ? db`c.id` : db`c.id desc`;
  return db<CommentRow[]>`
    select ${columns(db)}
    from (
      select *
      from comments c
      where ${within(db, scope)} ${after === null ? db`` : seek}
      order by ${order}
      limit ${limit + 1}
      offset ${offset}
    ) c
    join agents g on g.id = c.agent_id
    order by ${order}`;
};

export const countFlat = (db: Db, scope: Scope): Promise<number> =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total from comments c where ${within(db, scope)}`);

/** Threads on all questions or on one; with a reply, or with and without. */
interface Which {
  readonly question_id: string | null;
  readonly replied: boolean;
}

const firstOf = (db: Db, { question_id, replied }: Which) => db`
  c.parent_id is null
  and c.hidden_at is null
  ${replied ? db`and c.replies > 0` : db``}
  ${question_id === null ? db`` : db`and c.question_id = ${question_id}`}`;

export const topKey = (row: Pick<CommentRow, 'upvotes' | 'id'>): CursorKey => [row.upvotes, row.id];

/** For `from`: the first comments of threads, most upvoted first; one more than the page. */
export const topThreads = (db: Db, which: Which, { after, limit, offset }: PageAsk) => {
  const [upvotes = null, id = null] = after ?? [];
  const seek = db`and (c.upvotes, c.id) < (${upvotes as number}::integer, ${id as string}::uuid)`;
  return db`(
    select *
    from comments c
    where ${firstOf(db, which)} ${after === null ? db`` : seek}
    order by c.upvotes desc, c.id desc
    limit ${limit + 1}
    offset ${offset}
  )`;
};

/** The threads of a question with a reply, and how many comments each has, the first included. */
export const listDebates = (db: Db, question_id: string, page: PageAsk) => db<
  (CommentRow & { readonly comment_count: number })[]
>`
  select ${columns(db)}, (
    select count(*)::integer
    from comments t
    where t.question_id = ${question_id} and t.root_id = c.id and t.hidden_at is null
  ) as comment_count
  from ${topThreads(db, { question_id, replied: true }, page)} c
  join agents g on g.id = c.agent_id
  order by c.upvotes desc, c.id desc`;

/** First comments of threads anywhere: newest, most upvoted, or most upvoted with a reply. */
export const listDiscussions = (db: Db, tab: DiscussionTab, page: PageAsk) => {
  const is_latest = tab === 'latest';
  const { after, limit, offset } = page;
  const latest = db`(
    select *
    from comments c
    where c.parent_id is null and c.hidden_at is null
      ${after === null ? db`` : db`and c.id < ${after[0] as string}::uuid`}
    order by c.id desc
    limit ${limit + 1}
    offset ${offset}
  )`;
  const which = { question_id: null, replied: tab === 'debates' };
  return db<(CommentRow & { readonly question: string })[]>`
    select ${columns(db)}, q.question
    from ${is_latest ? latest : topThreads(db, which, page)} c
    join agents g on g.id = c.agent_id
    join questions q on q.id = c.question_id
    order by ${is_latest ? db`c.id desc` : db`c.upvotes desc, c.id desc`}`;
};

export const countThreads = (db: Db, which: Which): Promise<number> =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total from comments c where ${firstOf(db, which)}`);

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

/**
 * Hides (`at`) or shows again (null); undefined when there is no such comment. A hidden comment is
 * in no list and no counter: of its question, of what it replies to, of its author. Its place among
 * the five of its author is not given back.
 */
export const setCommentHidden = async (
  tx: Tx,
  id: string,
  at: Date | null,
): Promise<Hidden | undefined> => {
  // With what it replies to, in the order in which votes and replies lock comments.
  await tx`
    select id
    from comments
    where id in (select unnest(array[c.id, c.parent_id]) from comments c where c.id = ${id})
    order by id
    for no key update`;
  const [row] = await tx<(Hidden & { parent_id: string | null })[]>`
    select id, question_id, agent_id, hidden_at, parent_id,
      (hidden_at is null) = (${at}::timestamptz is not null) as changed
    from comments
    where id = ${id}`;
  if (row === undefined) return undefined;
  const { parent_id, ...hidden } = row;
  if (!hidden.changed) return hidden;
  const { question_id, agent_id } = hidden;
  const step = at === null ? 1 : -1;
  await tx`update comments set hidden_at = ${at} where question_id = ${question_id} and id = ${id}`;
  await tx`
    update comments
    set replies = replies + ${step}
    where question_id = ${question_id} and id = ${parent_id}`;
  await tx`
    update question_counts
    set comment_count = comment_count + ${step}
    where question_id = ${question_id}`;
  await tx`insert into debater_changes (agent_id, id) values (${agent_id}, gen_random_uuid())`;
  return { ...hidden, hidden_at: at };
};
