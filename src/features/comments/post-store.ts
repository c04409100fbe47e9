import type { Sql, Tx } from '../../kit/pg/client.js';
import { type SendLast, sendOne } from '../../kit/pg/short-transaction.js';
import type { Signature } from './copies.js';
import type { CommentRow } from './store.js';
import { recent_comments, recent_minutes } from './writer-memory.js';

/**
 * The statements by which a batch of comments is stored, at most one comment an agent. What an
 * agent may write depends on what it wrote before, so its earlier comments are read under a lock on
 * the agent that every process takes, in one order.
 */

export interface CommentDraft {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly prediction_id: string | null;
  readonly parent_id: string | null;
  readonly root_id: string;
  readonly depth: number;
  readonly content: string;
  readonly tokens: readonly string[];
  readonly signature: Signature;
  /** That of its tokens with those of links, which later comments are compared with. */
  readonly full_signature: Signature;
  /** SHA-256 (hex) of where it was posted and of the body. */
  readonly body_digest: string;
  readonly at: Date;
  readonly event_id: string;
  readonly event_body: string;
  /** For the author of what is replied to; null where there is nobody to tell. */
  readonly reply_event: {
    readonly id: string;
    readonly audience_id: string;
    readonly body: string;
  } | null;
}

export const isReply = (draft: Pick<CommentDraft, 'parent_id' | 'prediction_id'>): boolean =>
  draft.parent_id !== null || draft.prediction_id !== null;

const lock_class = 7_366_144;

const lockKey = (agent_id: string): number => Number.parseInt(agent_id.slice(-8), 16) | 0;

/**
 * Held until the transaction ends. What the transaction reads by an index it reads by that index
 * from the beginning: a plan that was made while the table was small, and is kept, would read all
 * of a table that has grown since (50 ms a batch after 10,000 comments).
 */
export const lockWriters = (tx: Tx, agent_ids: readonly string[]) => {
  const keys = [...new Set(agent_ids.map(lockKey))].sort((a, b) => a - b);
  return tx`
    with by_index as (select set_config('enable_seqscan', 'off', true))
    select pg_advisory_xact_lock(${lock_class}::integer, key)
    from by_index, unnest(${keys}::integer[]) as k (key)`;
};

export interface Written {
  readonly agent_id: string;
  readonly id: string;
  readonly content: string;
  readonly created_at: Date;
}

/** What these agents wrote lately, of each the newest first. */
export const readRecent = (tx: Tx, agent_ids: readonly string[], now: Date) => tx<Written[]>`
  select d.agent_id, c.id, c.content, c.created_at
  from unnest(${agent_ids as string[]}::uuid[]) as d (agent_id)
  cross join lateral (
    select id, content, created_at
    from comments
    where comments.agent_id = d.agent_id
    order by comments.id desc
    limit ${recent_comments}
  ) c
  where c.created_at > ${new Date(now.getTime() - recent_minutes * 60_000)}
  order by d.agent_id, c.id desc`;

/** For how long an identical body is answered with the first result. */
export const replay_minutes = 10;

/** The first results of bodies that were posted before: by agent. */
export const readRepeats = (tx: Tx, drafts: readonly CommentDraft[], now: Date) => tx<CommentRow[]>`
  select
    c.id, c.question_id, c.agent_id, g.name as agent_name, c.prediction_id, c.parent_id, c.root_id,
    c.depth, c.content, c.upvotes, c.replies, c.created_at
  from unnest(
    ${drafts.map((d) => d.agent_id)}::uuid[],
    ${drafts.map((d) => d.body_digest)}::text[]
  ) as d (agent_id, digest)
  join comments c on c.agent_id = d.agent_id and c.body_digest = decode(d.digest, 'hex')
  join agents g on g.id = c.agent_id
  where c.created_at > ${new Date(now.getTime() - replay_minutes * 60_000)}
    and c.hidden_at is null`;

export interface Standing {
  readonly agent_id: string;
  /** Null for a comment of the top level, which needs none. */
  readonly points: number | null;
  /** Top-level comments on the question of its draft; 0 for a reply, which is not counted. */
  readonly used: number;
  /** Its last comment anywhere; null when there is none. */
  readonly last_id: string | null;
}

export const readStandings = (tx: Tx, drafts: readonly CommentDraft[]) => tx<Standing[]>`
  select
    d.agent_id,
    case when d.question_id is null then (
      select a.balance from accounts a where a.agent_id = d.agent_id
    ) end as points,
    coalesce(
      (
        select max(c.slot)
        from comments c
        where c.question_id = d.question_id and c.agent_id = d.agent_id and c.slot is not null
      ),
      0
    )::integer as used,
    (
      select c.id
      from comments c
      where c.agent_id = d.agent_id
      order by c.id desc
      limit 1
    ) as last_id
  from unnest(
    ${drafts.map((d) => d.agent_id)}::uuid[],
    ${drafts.map((d) => (isReply(d) ? null : d.question_id))}::uuid[]
  ) as d (agent_id, question_id)`;

export interface Numbered {
  readonly draft: CommentDraft;
  /** 1 to 5 for a comment of the top level. */
  readonly slot: number | null;
}

/** For `unnest`: what of a draft is stored or looked at. */
export const draftArrays = (db: Sql | Tx, drafts: readonly CommentDraft[]) => db`
  ${drafts.map((d) => d.id)}::uuid[],
  ${drafts.map((d) => d.question_id)}::uuid[],
  ${drafts.map((d) => d.agent_id)}::uuid[],
  ${drafts.map((d) => d.prediction_id)}::uuid[],
  ${drafts.map((d) => d.parent_id)}::uuid[],
  ${drafts.map((d) => d.root_id)}::uuid[],
  ${drafts.map((d) => d.depth)}::smallint[],
  ${drafts.map((d) => d.content)}::text[],
  ${drafts.map((d) => d.body_digest)}::text[],
  ${drafts.map((d) => d.at.toISOString())}::timestamptz[],
  ${drafts.map((d) => d.event_id)}::uuid[],
  ${drafts.map((d) => d.event_body)}::text[],
  ${drafts.map((d) => d.reply_event?.id ?? null)}::uuid[],
  ${drafts.map((d) => d.reply_event?.audience_id ?? null)}::uuid[],
  ${drafts.map((d) => d.reply_event?.body ?? null)}::text[]`;

export const draftColumns = (db: Sql | Tx) => db`
  id, question_id, agent_id, prediction_id, parent_id, root_id, depth, content, body_digest, at,
  event_id, event_body, reply_event_id, reply_audience_id, reply_body`;

/**
 * Stores the rows of `given` with their events, the counters of what they reply to, and the mark
 * for the board. A reply to a comment that was hidden meanwhile is not stored; the ids of those
 * that are.
 */
export const storing = (db: Sql | Tx) => db`
  parents as materialized (
    select c.question_id, c.id
    from comments c
    where (c.question_id, c.id) in (
        select question_id, parent_id from given where parent_id is not null
      )
      and c.hidden_at is null
    order by c.id
    for no key update
  ),
  d as materialized (
    select given.*
    from given
    left join parents p on p.question_id = given.question_id and p.id = given.parent_id
    where given.parent_id is null or p.id is not null
  ),
  placed as (
    insert into comments (
      question_id, id, agent_id, prediction_id, parent_id, root_id, depth, slot, content,
      body_digest, event_id, created_at
    )
    select
      question_id, id, agent_id, prediction_id, parent_id, root_id, depth, slot, content,
      decode(body_digest, 'hex'), event_id, at
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
  ),
  emitted as (
    insert into outbox (id, event, question_id, agent_id, audience_id, body)
    select event_id, 'comment.created', question_id, agent_id, null, event_body
    from d
    union all
    select reply_event_id, 'comment.reply', question_id, agent_id, reply_audience_id, reply_body
    from d
    where reply_event_id is not null
  ),
  marked as (
    insert into debater_changes (agent_id, id)
    select agent_id, id from d
  )
  select id from d`;

/** Stores drafts that were judged to stand; the ids of those that are stored. */
export const insertComments = async (
  tx: Sql | Tx,
  numbered: readonly Numbered[],
  send: SendLast = sendOne,
): Promise<ReadonlySet<string>> => {
  const drafts = numbered.map(({ draft }) => draft);
  const rows = await send(tx<{ id: string }[]>`
    with given as (
      select *
      from unnest(${draftArrays(tx, drafts)}, ${numbered.map(({ slot }) => slot)}::smallint[])
        as given (${draftColumns(tx)}, slot)
    ),
    ${storing(tx)}`);
  return new Set(rows.map(({ id }) => id));
};
