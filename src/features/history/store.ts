import { type Db, readPages, type Tx } from '../../kit/pg/client.js';
import { givenBy, type QuestionShape } from '../consensus/index.js';
import { givenSides } from '../predictions/index.js';
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

/** What was stated on a question that got predictions within a stretch of time, by family. */
export interface MovedRow {
  readonly question_id: string;
  readonly model_family: string;
  /** Null on a binary question. */
  readonly option: number | null;
  /**
   * Predictions made at the beginning of the stretch or before, and the sum of the percents that
   * they give YES, or this option: every prediction gives something to each of the options.
   */
  readonly count_before: number;
  readonly sum_before: number;
  /** Predictions made within it. */
  readonly count_within: number;
  readonly sum_within: number;
}

/** Predictions after the first moment and until the second are within. */
export interface Stretch {
  readonly from: Date;
  readonly to: Date;
}

/** By question, option and family; of what the log has. */
export const readMoved = (db: Db, { from, to }: Stretch) => db<MovedRow[]>`
  with moved as materialized (
    select distinct question_id
    from predictions
    where created_at > ${from} and created_at <= ${to}
  )
  select
    p.question_id,
    p.model_family,
    case when q.question_type = 'multi' then s.side end as option,
    (count(*) filter (where p.created_at <= ${from}))::integer as count_before,
    (coalesce(sum(s.given) filter (where p.created_at <= ${from}), 0))::float8
      / greatest(cardinality(q.options) - 1, 1) as sum_before,
    (count(*) filter (where p.created_at > ${from}))::integer as count_within,
    (coalesce(sum(s.given) filter (where p.created_at > ${from}), 0))::float8
      / greatest(cardinality(q.options) - 1, 1) as sum_within
  from moved m
  join questions q on q.id = m.question_id
  join predictions p on p.question_id = q.id
  cross join ${givenSides(db)}
  where p.created_at <= ${to}
    and (q.question_type = 'multi' or s.side = 1)
    and not exists (select from outbox o where o.id = p.event_id)
  group by p.question_id, p.model_family, s.side, q.question_type, cardinality(q.options)
  order by p.question_id, s.side`;
