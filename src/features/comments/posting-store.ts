import type { Tx } from '../../db/client.js';

/** What a batch of comments locks, reads and writes. */

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
 * tables are then read by their indexes: a plan that was made while a table was small, and is kept,
 * would read all of it (50 ms a batch after 10,000 comments).
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

export interface NewComment extends Draft {
  readonly id: string;
  readonly prediction_id: string | null;
  readonly root_id: string;
  readonly depth: number;
  /** 1 to 5 for a comment of the top level. */
  readonly slot: number | null;
  readonly content: string;
  readonly event_id: string;
}

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
