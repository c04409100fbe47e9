import type { Sql } from '../../kit/pg/client.js';
import type { Stated } from './run.js';

/** What was stated on a question, read from the record piece by piece. */

/** Rows at a time: a piece of them takes a few milliseconds of the event loop. */
const piece = 4_000;

interface StatedRow extends Stated {
  readonly offset: number;
}

/**
 * All predictions of a question that the log has, in the order of their times, and the offset of
 * the newest one: one statement, which sees one state. Those whose event is still in the outbox
 * are left out, as in the consensus; what moderation hid and what was voided stays in, also as
 * there.
 */
export const readStated = (sql: Sql, question_id: string): AsyncIterable<readonly StatedRow[]> =>
  sql<StatedRow[]>`
  select
    (extract(epoch from p.created_at) * 1000)::float8 as at,
    p.model_family as family,
    coalesce(p.owner_id, p.agent_id)::text as owner,
    coalesce(p.selected_option, p.prediction::integer) as side,
    coalesce(p.probability, p.confidence) as value,
    c.prediction_offset as "offset"
  from predictions p
  join question_counts c on c.question_id = p.question_id
  where p.question_id = ${question_id}
    and not exists (select from outbox o where o.id = p.event_id)
  order by p.created_at, p.id`.cursor(piece);
