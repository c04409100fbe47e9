import type { Db, Tx } from '../../db/client.js';
import { firstRow, limitToPage } from '../../db/rows.js';
import type { CursorKey, PageRequest } from '../../http/page.js';
import { comment_created } from '../events/catalogue.js';
import type { Hidden } from '../predictions/index.js';
import type { CommentWire } from './schema.js';

/** Reads, writes and hides comments, and writes votes. Every list uses an index. */

/** A comment as in answers, except that its time is a `Date`, which JSON turns into a string. */
export type CommentRow = Omit<CommentWire, 'created_at'> & { readonly created_at: Date };

const columns = (db: Db) => db`
  c.id, c.id as comment_id, c.question_id, c.prediction_id, c.parent_id, c.root_id, c.depth,
  c.agent_id as user_id, g.name as user_name, c.content, c.upvotes, c.replies, c.created_at`;

/** Returns undefined if the comment is hidden or its question is a draft. */
export const readComment = (db: Db, id: string) =>
  firstRow(db<CommentRow[]>`
    select ${columns(db)}
    from comments c
    join agents g on g.id = c.agent_id
    join questions q on q.id = c.question_id
    where c.id = ${id} and c.hidden_at is null and q.status <> 'draft'`);

/** Returns the question and the author of a prediction that can be replied to. */
export const readPredictionRef = (db: Db, id: string) =>
  firstRow(db<{ readonly question_id: string; readonly author_id: string }[]>`
    select p.question_id, p.agent_id as author_id
    from predictions p
    join questions q on q.id = p.question_id
    where p.id = ${id} and p.hidden_at is null and q.status <> 'draft'`);

export interface Filter {
  readonly question_id?: string;
  /** Selects the replies to a prediction and the threads below them. */
  readonly prediction_id?: string;
  /** Selects one thread, by its first comment. */
  readonly thread?: string | undefined;
  /** Selects the first comment of each thread. `replied`: only threads with a reply. */
  readonly threads?: 'all' | 'replied';
}

const matches = (db: Db, { question_id, prediction_id, thread, threads }: Filter) => db`
  c.hidden_at is null
  ${question_id === undefined ? db`` : db`and c.question_id = ${question_id}`}
  ${prediction_id === undefined ? db`` : db`and c.prediction_id = ${prediction_id}`}
  ${thread === undefined ? db`` : db`and c.root_id = ${thread}`}
  ${threads === undefined ? db`` : db`and c.parent_id is null`}
  ${threads === 'replied' ? db`and c.replies > 0` : db``}`;

export const countComments = async (db: Db, filter: Filter): Promise<{ total: number }> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::integer as total from comments c where ${matches(db, filter)}`;
  return row ?? { total: 0 };
};

/** Oldest, newest or most upvoted first. */
export type Order = 'old' | 'new' | 'top';

const orderOf = (db: Db, order: Order) =>
  order === 'old' ? db`c.id` : order === 'new' ? db`c.id desc` : db`c.upvotes desc, c.id desc`;

export const topKey = (row: Pick<CommentRow, 'upvotes' | 'id'>): CursorKey => [row.upvotes, row.id];

const isAfter = (db: Db, order: Order, [first = null, id = null]: CursorKey) => {
  if (order === 'old') return db`and c.id > ${first}::uuid`;
  if (order === 'new') return db`and c.id < ${first}::uuid`;
  return db`and (c.upvotes, c.id) < (${first}::integer, ${id}::uuid)`;
};

/** Subquery for `from`: the comments of a page, and one more if there is a next page. */
export const pageOf = (db: Db, filter: Filter, order: Order, page: PageRequest) => db`(
  select *
  from comments c
  where ${matches(db, filter)} ${page.after === null ? db`` : isAfter(db, order, page.after)}
  order by ${orderOf(db, order)}
  ${limitToPage(db, page)}
)`;

export const listComments = (db: Db, filter: Filter, order: Order, page: PageRequest) =>
  db<CommentRow[]>`
    select ${columns(db)}
    from ${pageOf(db, filter, order, page)} c
    join agents g on g.id = c.agent_id
    order by ${orderOf(db, order)}`;

/** Lists a question's threads that have replies, with their number of comments. */
export const listDebates = (db: Db, question_id: string, page: PageRequest) => db<
  (CommentRow & { readonly comment_count: number })[]
>`
  select ${columns(db)}, (
    select count(*)::integer
    from comments t
    where t.question_id = ${question_id} and t.root_id = c.id and t.hidden_at is null
  ) as comment_count
  from ${pageOf(db, { question_id, threads: 'replied' }, 'top', page)} c
  join agents g on g.id = c.agent_id
  order by ${orderOf(db, 'top')}`;

export const listDiscussions = (db: Db, filter: Filter, order: Order, page: PageRequest) => db<
  (CommentRow & { readonly question: string })[]
>`
  select ${columns(db)}, q.question
  from ${pageOf(db, filter, order, page)} c
  join agents g on g.id = c.agent_id
  join questions q on q.id = c.question_id
  order by ${orderOf(db, order)}`;

/** Reads the first comments of these threads: up to `most` per thread, including the root. */
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
 * Hides a comment (`at`) or shows it again (null). Returns undefined if it does not exist. A hidden
 * comment is in no list, and is not counted for its question, its parent or its author. It still
 * takes up one of its author's five slots.
 */
export const setCommentHidden = async (
  tx: Tx,
  id: string,
  at: Date | null,
): Promise<Hidden | undefined> => {
  // Also locks its parent. Votes and replies lock comments in the same order.
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

export interface Draft extends Pick<CommentWire, 'question_id' | 'parent_id'> {
  readonly agent_id: string;
  /** SHA-256 (hex) of the target and the body. */
  readonly digest: string;
  readonly at: Date;
}

const lock_class = 7_366_144;

/**
 * Locks the agents in a fixed order, so that they post no other comment until the transaction ends.
 * Also forces the use of indexes: a plan that was cached when a table was small would read all of
 * it (50 ms per batch after 10,000 comments).
 */
export const lockWriters = (tx: Tx, drafts: readonly Draft[]) => tx`
  select set_config('enable_seqscan', 'off', true), pg_advisory_xact_lock(${lock_class}, number)
  from (
    select distinct hashtext(id) as number
    from unnest(${drafts.map(({ agent_id }) => agent_id)}::text[]) as id
    order by number
  ) as numbers`;

/** Locks the parents of replies. Votes and hiding lock comments in the same order. */
export const lockParents = (tx: Tx, drafts: readonly Draft[]) => tx`
  select id
  from comments
  where id = any (${drafts.flatMap(({ parent_id }) => parent_id ?? [])}::uuid[])
  order by id
  for no key update`;

export interface Known {
  readonly points: number;
  /** The agent's last comment on any question. */
  readonly last_id: string | null;
  /** The agent's number of top-level comments on the question, including hidden comments. */
  readonly used: number;
  /** The agent's comment with the same body in the last ten minutes, or null. */
  readonly repeat_id: string | null;
  /** The agent's last ten comments, except comments older than an hour. */
  readonly recent: readonly string[];
  /** True if the parent exists and is not hidden, or if there is no parent. */
  readonly has_parent: boolean;
}

/** Returns one row per draft. Must run after the locks are taken. */
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
    /** 1 to 5 for a top-level comment, otherwise null. */
    readonly slot: number | null;
    readonly event_id: string;
    readonly body: string;
  };

/** Writes comments, events, reply counts and a leaderboard update in one statement. */
export const insertComments = (tx: Tx, rows: readonly NewComment[]): Promise<unknown> =>
  tx`
    with d as materialized (
      select *
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
        id uuid, question_id uuid, agent_id uuid, prediction_id uuid, parent_id uuid, root_id uuid,
        depth smallint, slot smallint, content text, digest text, at timestamptz, event_id uuid,
        body text
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
    emitted as (
      insert into outbox (id, event, question_id, agent_id, body)
      select event_id, ${comment_created.name}, question_id, agent_id, body from d
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
    select agent_id, id from d limit 1`.execute();

export interface Ballot {
  readonly kind: 'prediction' | 'comment';
  readonly subject_id: string;
  readonly agent_id: string;
  readonly value: 1 | -1;
  /** True to withdraw such a vote, if there is one. */
  readonly withdraw: boolean;
  readonly at: Date;
}

/** Locks voters and authors, so that they cannot be linked to an owner meanwhile. */
export const lockAgents = (tx: Tx, ballots: readonly Ballot[], ids: readonly string[]) => tx`
  select id
  from agents
  where id = any (array(
    select unnest(${ballots.map((ballot) => ballot.agent_id)}::uuid[])
    union all
    select agent_id from predictions where id = any (${ids as string[]}::uuid[])
    union all
    select agent_id from comments where id = any (${ids as string[]}::uuid[])
  ))
  order by id
  for key share`;

export const lockSubjects = (tx: Tx, ids: readonly string[]) =>
  ['predictions', 'comments'].map((table) =>
    tx`
      select id
      from ${tx(table)}
      where id = any (${ids as string[]}::uuid[])
      order by id
      for no key update`.execute(),
  );

export interface Subject {
  readonly question_id: string | null;
  readonly author_id: string;
  readonly upvotes: number;
  readonly downvotes: number;
  readonly same_owner: boolean;
  readonly own: 1 | -1 | null;
}

export const readSubjects = (tx: Tx, ballots: readonly Ballot[]) => tx<Subject[]>`
  select
    s.question_id, s.agent_id as author_id, s.upvotes, s.downvotes,
    coalesce(s.agent_id = d.agent_id or voter.owner_id = author.owner_id, false) as same_owner,
    (
      select v.value
      from votes v
      where v.question_id = s.question_id and v.subject_id = s.id and v.agent_id = d.agent_id
    ) as own
  from unnest(
    ${ballots.map((ballot) => ballot.kind)}::text[],
    ${ballots.map((ballot) => ballot.subject_id)}::uuid[],
    ${ballots.map((ballot) => ballot.agent_id)}::uuid[]
  ) with ordinality as d (kind, subject_id, agent_id, n)
  left join lateral (
    select p.id, p.question_id, p.agent_id, p.upvotes, p.downvotes
    from predictions p
    join questions q on q.id = p.question_id
    where d.kind = 'prediction' and p.id = d.subject_id
      and p.hidden_at is null and q.status <> 'draft'
    union all
    select c.id, c.question_id, c.agent_id, c.upvotes, 0
    from comments c
    join questions q on q.id = c.question_id
    where d.kind = 'comment' and c.id = d.subject_id
      and c.hidden_at is null and q.status <> 'draft'
  ) s on true
  left join agents voter on voter.id = d.agent_id
  left join agents author on author.id = s.agent_id
  order by d.n`;

/** A vote that is cast, changed or withdrawn (`value` null), and its effect on the counters. */
export interface Change extends Pick<Ballot, 'kind' | 'subject_id' | 'agent_id' | 'at'> {
  readonly question_id: string;
  readonly author_id: string;
  readonly value: 1 | -1 | null;
  readonly up: number;
  readonly down: number;
}

/** Writes votes, counters of the locked subjects, and a row to update the leaderboards. */
export const writeVotes = async (tx: Tx, changes: readonly Change[]): Promise<void> => {
  if (changes.length === 0) return;
  await tx`
    with d as materialized (
      select *
      from json_to_recordset(${JSON.stringify(changes)}::text::json) as d (
        kind text, question_id uuid, subject_id uuid, agent_id uuid, author_id uuid,
        value smallint, up integer, down integer, at timestamptz
      )
    ),
    gone as (
      delete from votes v
      using d
      where v.question_id = d.question_id and v.subject_id = d.subject_id
        and v.agent_id = d.agent_id and d.value is null
    ),
    come as (
      insert into votes (question_id, subject_id, agent_id, kind, author_id, value, created_at)
      select question_id, subject_id, agent_id, kind, author_id, value, at
      from d
      where value is not null
      on conflict (question_id, subject_id, agent_id) do update
        set value = excluded.value, created_at = excluded.created_at
    ),
    moves as materialized (
      select
        kind, question_id, subject_id, author_id,
        sum(up)::integer as up,
        sum(down)::integer as down
      from d
      group by kind, question_id, subject_id, author_id
    ),
    moved_predictions as (
      update predictions p
      set upvotes = p.upvotes + m.up, downvotes = p.downvotes + m.down
      from moves m
      where m.kind = 'prediction' and p.question_id = m.question_id and p.agent_id = m.author_id
    ),
    moved_comments as (
      update comments c
      set upvotes = c.upvotes + m.up
      from moves m
      where m.kind = 'comment' and c.question_id = m.question_id and c.id = m.subject_id
    )
    insert into debater_changes (agent_id, id)
    select author_id, gen_random_uuid() from moves where kind = 'comment' limit 1`.execute();
};

/**
 * Deletes the votes between an agent and the other agents of its owner. Runs in the transaction
 * that links the agent, after the link. Locks the owner: if two agents are linked at the same time,
 * the later link sees the earlier one. Votes in progress lock the agent, so linking waits for them.
 */
export const voidVotes = async (
  tx: Tx,
  { agent_id, owner_id }: { readonly agent_id: string; readonly owner_id: string },
): Promise<void> => {
  await tx`select id from humans where id = ${owner_id} for no key update`;
  const votes = await tx<Omit<Change, 'value'>[]>`
    select
      v.kind, v.question_id, v.subject_id, v.agent_id, v.author_id, now() as at,
      -(v.value = 1)::integer as up,
      -(v.value = -1)::integer as down
    from votes v
    join agents other on other.owner_id = ${owner_id} and other.id <> ${agent_id}
    where (v.agent_id = ${agent_id} and v.author_id = other.id)
      or (v.agent_id = other.id and v.author_id = ${agent_id})`;
  if (votes.length === 0) return;
  const ids = votes.map(({ subject_id }) => subject_id);
  await Promise.all(lockSubjects(tx, ids));
  const gone = votes.map((vote) => ({ ...vote, value: null }));
  await writeVotes(tx, gone);
};
