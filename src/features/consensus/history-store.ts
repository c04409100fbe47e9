import { readPages, type Tx } from '../../db/client.js';
import { givenBy, type QuestionShape } from './rules.js';
import type { Stated } from './run.js';

/** What was stated, from the record. */

interface StatedRow extends Omit<Stated, 'given'> {
  readonly probabilities: readonly number[] | null;
  readonly offset: number;
}

const portion = 1_000;

/**
 * All predictions of a question that the log has, in the order of their times, and the offset of
 * the newest one: one statement, which sees one state. Those whose event is still in the outbox
 * are left out, as in the consensus; what moderation hid and what was voided stays in, also as
 * there.
 */
export const readStated = async (
  tx: Tx,
  { id, question_type, options }: QuestionShape,
): Promise<{ readonly all: readonly Stated[]; readonly offset: number }> => {
  const all: Stated[] = [];
  let last = 0;
  const rows = tx<StatedRow[]>`
    select
      (extract(epoch from p.created_at) * 1000)::bigint as at,
      coalesce(p.selected_option, p.prediction::integer) as side,
      coalesce(p.probability, p.confidence) as value,
      coalesce(p.owner_id, p.agent_id) as owner,
      p.model_family as family,
      p.probabilities,
      c.prediction_offset as "offset"
    from predictions p
    join question_counts c on c.question_id = p.question_id
    where p.question_id = ${id} and not exists (select from outbox o where o.id = p.event_id)
    order by p.created_at, p.id`;
  for await (const page of readPages<StatedRow>(tx, rows, portion)) {
    for (const { probabilities, offset, ...one } of page) {
      const option = question_type === 'binary' ? null : one.side;
      const given = givenBy({ option, value: one.value }, probabilities, options.length) ?? [];
      all.push({ ...one, given });
      last = offset;
    }
  }
  return { all, offset: last };
};
