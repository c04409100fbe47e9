import type { Db } from '../../kit/pg/client.js';
import { givenSides } from '../predictions/index.js';
import type { QuestionRow } from '../questions/index.js';

/** What was stated on the questions that got predictions within a stretch of time. */
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

export interface Stretch {
  /** Predictions after this … */
  readonly from: Date;
  /** … and until this are within. */
  readonly to: Date;
}

/** By question, family and option; of what the log has. */
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
  group by p.question_id, p.model_family, s.side, q.question_type, cardinality(q.options)`;

export interface NamedQuestion {
  readonly id: string;
  readonly question: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly category: string;
  readonly status: QuestionRow['status'];
}

export const readNamed = (db: Db, ids: readonly string[]) => db<NamedQuestion[]>`
  select id, question, question_type, options, category, status
  from questions
  where id = any (${ids as string[]}::uuid[])`;
