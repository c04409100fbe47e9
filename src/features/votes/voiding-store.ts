import type { Tx } from '../../kit/pg/client.js';
import { lockMoved } from './store.js';

/**
 * Takes away the votes between an agent and the others of its owner; for the transaction that links
 * it, after the link. The owner is locked, so that of two agents linked at once the later one finds
 * the earlier. Votes under way have the agent locked, and linking waits for them by that.
 */
export const voidVotes = async (
  tx: Tx,
  link: { readonly agent_id: string; readonly owner_id: string },
): Promise<number> => {
  const { agent_id, owner_id } = link;
  await tx`select id from humans where id = ${owner_id} for no key update`;
  const [row] = await tx<{ voided: number }[]>`
    with others as (
      select id from agents where owner_id = ${owner_id} and id <> ${agent_id}
    ),
    voided as (
      delete from votes v
      using others o
      where (v.agent_id = ${agent_id} and v.author_id = o.id)
        or (v.author_id = ${agent_id} and v.agent_id = o.id)
      returning v.question_id, v.subject_id, v.kind, v.author_id, v.value
    ),
    moves as materialized (
      select
        question_id, subject_id, kind, author_id,
        count(*) filter (where value = 1)::integer as up,
        count(*) filter (where value = -1)::integer as down
      from voided
      group by question_id, subject_id, kind, author_id
    ),
    ${lockMoved(tx)},
    moved_predictions as (
      update predictions p
      set upvotes = l.upvotes - m.up, downvotes = l.downvotes - m.down
      from locked_predictions l
      join moves m on m.subject_id = l.id
      where p.question_id = l.question_id and p.agent_id = l.agent_id
    ),
    moved_comments as (
      update comments c
      set upvotes = l.upvotes - m.up
      from locked_comments l
      join moves m on m.subject_id = l.id
      where c.question_id = l.question_id and c.id = l.id
    ),
    marked as (
      insert into debater_changes (agent_id, id)
      select author_id, gen_random_uuid()
      from moves
      where kind = 'comment'
      group by author_id
    )
    select count(*)::integer as voided from voided`;
  return row?.voided ?? 0;
};
