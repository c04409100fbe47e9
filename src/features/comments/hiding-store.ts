import type { Tx } from '../../kit/pg/client.js';
import type { Hidden } from '../predictions/index.js';

/**
 * Hiding a comment takes it from every list and counter: those of its question, of what it replies
 * to, and of its author. Replies to it stay; in a tree they then stand below the thread's first
 * comment. Its place among the five of its author is not given back.
 */

/** Hides (`at`) or shows again (null); undefined when there is no such comment. */
export const setCommentHidden = async (
  tx: Tx,
  id: string,
  at: Date | null,
): Promise<Hidden | undefined> => {
  // With what it replies to, in the order in which votes and replies lock comments.
  await tx`
    select id
    from comments
    where id in (
      select unnest(array[c.id, c.parent_id]) from comments c where c.id = ${id}
    )
    order by id
    for no key update`;
  const [changed] = await tx<(Omit<Hidden, 'changed'> & { parent_id: string | null })[]>`
    update comments
    set hidden_at = ${at}
    where id = ${id} and (hidden_at is null) = (${at}::timestamptz is not null)
    returning id, question_id, agent_id, hidden_at, parent_id`;
  if (changed === undefined) {
    const [same] = await tx<Omit<Hidden, 'changed'>[]>`
      select id, question_id, agent_id, hidden_at from comments where id = ${id}`;
    return same === undefined ? undefined : { ...same, changed: false };
  }
  const { parent_id, ...row } = changed;
  const step = at === null ? 1 : -1;
  if (parent_id !== null) {
    await tx`
      update comments
      set replies = replies + ${step}
      where question_id = ${row.question_id} and id = ${parent_id}`;
  }
  await tx`
    update question_counts
    set comment_count = comment_count + ${step}
    where question_id = ${row.question_id}`;
  await tx`
    insert into debater_changes (agent_id, id) values (${row.agent_id}, gen_random_uuid())`;
  return { ...row, changed: true };
};
