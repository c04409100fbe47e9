import type { Tx } from '../../kit/pg/client.js';
import type { SendLast } from '../../kit/pg/short-transaction.js';
import {
  type CommentDraft,
  draftArrays,
  draftColumns,
  lockWriters,
  replay_minutes,
  storing,
} from './post-store.js';

/** A draft, and the last comment of its agent as far as is known. */
export interface Expecting {
  readonly draft: CommentDraft;
  readonly last_id: string | null;
}

export interface QuickRules {
  /** Top-level comments of an agent on a question. */
  readonly most: number;
  /** Points that a reply needs. */
  readonly least_points: number;
}

/**
 * Stores those drafts of which nothing can be said against them, in one statement after the lock:
 * the last comment of the agent is the expected one, the draft sorts behind it, the body is new,
 * and the limits hold. Of the others nothing is known but that they are not stored; the ids of
 * those that are. Every look goes by an index and by itself, whatever the plan was made for.
 */
export const insertExpecting = async (
  tx: Tx,
  expecting: readonly Expecting[],
  rules: QuickRules,
  send: SendLast,
): Promise<ReadonlySet<string>> => {
  const drafts = expecting.map(({ draft }) => draft);
  const now = drafts.reduce((latest, { at }) => (at > latest ? at : latest), new Date(0));
  const statement = tx<{ id: string }[]>`
    with given as materialized (
      select asked.*, numbered.slot
      from unnest(${draftArrays(tx, drafts)}, ${expecting.map((one) => one.last_id)}::uuid[])
        as asked (${draftColumns(tx)}, last_id)
      left join lateral (
        select c.id
        from comments c
        where c.agent_id = asked.agent_id
        order by c.id desc
        limit 1
      ) last on true
      left join lateral (
        select c.id
        from comments c
        where c.agent_id = asked.agent_id
          and c.body_digest = decode(asked.body_digest, 'hex')
          and c.created_at > ${new Date(now.getTime() - replay_minutes * 60_000)}
          and c.hidden_at is null
        limit 1
      ) repeated on true
      cross join lateral (
        select case when asked.parent_id is null and asked.prediction_id is null then (
          select coalesce(max(c.slot), 0) + 1
          from comments c
          where c.question_id = asked.question_id
            and c.agent_id = asked.agent_id
            and c.slot is not null
        ) end::smallint as slot
        -- So that it is looked at once.
        offset 0
      ) numbered
      -- Only with the lock, which sets this: where their connection is lost on its way, the
      -- statement may come through alone on the next one.
      where current_setting('enable_seqscan') = 'off'
        and last.id is not distinct from asked.last_id
        and (last.id is null or last.id < asked.id)
        and repeated.id is null
        and case when numbered.slot is null then (
          select a.balance >= ${rules.least_points}
          from accounts a
          where a.agent_id = asked.agent_id
        ) else numbered.slot <= ${rules.most} end
    ),
    ${storing(tx)}`;
  // On their way together; the statement has a view that is younger than the lock.
  const locked = lockWriters(
    tx,
    drafts.map(({ agent_id }) => agent_id),
  ).execute();
  const [rows] = await Promise.all([send(statement), locked]);
  return new Set(rows.map(({ id }) => id));
};
