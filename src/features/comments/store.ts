import type { Db, Tx } from '../../db/client.js';
import type { CursorKey, PageAsk } from '../../http/page.js';
import type { Hidden } from '../predictions/index.js';
import type { CommentWire, DiscussionTab } from './schema.js';

/** Comments as they are read, written and hidden. Every list follows an index from its cursor. */

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

/** A comment before it is judged. */
export interface Draft {
  readonly question_id: string;
  readonly parent_id: string | null;
  readonly agent_id: string;
  /** SHA-256 (hex) of where it is posted and of the body. */
  readonly digest: string;
  readonly at: Date;
}

const lock_class = 7_366_144;

/**
 * Locks the agents against other comments of theirs, in one order, until the transaction ends. Its
 * tables are then read by their indexes: a cached plan, made while a table was small, would read all
 * of it (50 ms a batch after 10,000 comments).
 */
export const lockWriters = (tx: Tx, drafts: readonly Draft[]) => tx`
  select set_config('enable_seqscan', 'off', true), pg_advisory_xact_lock(${lock_class}, number)
  from (
    select distinct hashtext(id) as number
    from unnest(${drafts.map(({ agent_id }) => agent_id)}::text[]) as id
    order by number
  ) as numbers`;

/** Locks what is replied to, in the order in which votes and hiding lock comments. */
export const lockParents = (tx: Tx, drafts: readonly Draft[]) => tx`
  select id
  from comments
  where id = any (${drafts.flatMap(({ parent_id }) => parent_id ?? [])}::uuid[])
  order by id
  for no key update`;

/** What is stored of the agent of a draft, and of what the draft replies to. */
export interface Known {
  readonly points: number;
  /** The agent's last comment anywhere. */
  readonly last_id: string | null;
  /** Its top-level comments on the question. */
  readonly used: number;
  /** Its comment with this very body of the last ten minutes. */
  readonly repeat_id: string | null;
  /** Its last ten comments, as far as they are of the last hour. */
  readonly recent: readonly string[];
  /** Nothing is replied to, or it is there and not hidden. */
  readonly has_parent: boolean;
}

/** Of each draft; under the locks, whose statements went before. */
export const readKnown = (tx: Tx, drafts: readonly Draft[]) => tx<Known[]>`
  select
    coalesce((select a.balance from accounts a where a.agent_id = d.agent_id), 0) as points,
    (
      select c.id from comments c where c.agent_id = d.agent_id order by c.id desc limit 1
    ) as last_id,
    (
      select coalesce(max(c.slot), 0)::integer
      from comments c
      where c.question_id = d.question_id and c.agent_id = d.agent_id and c.slot is not null
    ) as used,
    (
      select c.id
      from comments c
      where c.agent_id = d.agent_id
        and c.body_digest = decode(d.digest, 'hex')
        and c.created_at > d.at - interval '10 minutes'
        and c.hidden_at is null
      limit 1
    ) as repeat_id,
    array(
      select c.content
      from (
        select content, created_at
        from comments
        where agent_id = d.agent_id
        order by id desc
        limit 10
      ) c
      where c.created_at > d.at - interval '1 hour'
    ) as recent,
    d.parent_id is null or exists (
      select
      from comments c
      where c.question_id = d.question_id and c.id = d.parent_id and c.hidden_at is null
    ) as has_parent
  from unnest(
    ${drafts.map((d) => d.agent_id)}::uuid[],
    ${drafts.map((d) => d.question_id)}::uuid[],
    ${drafts.map((d) => d.parent_id)}::uuid[],
    ${drafts.map((d) => d.digest)}::text[],
    ${drafts.map((d) => d.at.toISOString())}::timestamptz[]
  ) with ordinality as d (agent_id, question_id, parent_id, digest, at, n)
  order by d.n`;

type NewComment = Draft &
  Pick<CommentWire, 'id' | 'prediction_id' | 'root_id' | 'depth' | 'content'> & {
    /** 1 to 5 for a comment of the top level. */
    readonly slot: number | null;
    readonly event_id: string;
  };

/** Stores comments, the counters of what they reply to, and whose place among debaters moved. */
export const insertComments = async (tx: Tx, rows: readonly NewComment[]): Promise<void> => {
  await tx`
    with d as materialized (
      select *
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
        id uuid, question_id uuid, agent_id uuid, prediction_id uuid, parent_id uuid, root_id uuid,
        depth smallint, slot smallint, content text, digest text, at timestamptz, event_id uuid
      )
    ),
    stored as (
      insert into comments (
        question_id, id, agent_id, prediction_id, parent_id, root_id, depth, slot, content,
        body_digest, event_id, created_at
      )
      select
        question_id, id, agent_id, prediction_id, parent_id, root_id, depth, slot, content,
        decode(digest, 'hex'), event_id, at
      from d
    ),
    counted as (
      update comments c
      set replies = c.replies + n.count
      from (
        select question_id, parent_id, count(*)::integer as count
        from d
        where parent_id is not null
        group by question_id, parent_id
      ) n
      where c.question_id = n.question_id and c.id = n.parent_id
    )
    insert into debater_changes (agent_id, id)
    select agent_id, id from d`;
};
