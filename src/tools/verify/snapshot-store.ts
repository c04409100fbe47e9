import { givenSides } from '../../features/predictions/index.js';
import type { Query } from './parts.js';

/** Snapshots of the consensus, each against the predictions up to its offset of the log. */
export const snapshot_queries: readonly Query[] = [
  // Questions of which the log no longer has every prediction are left out.
  (tx) => tx`
    with placed as (
      select
        p.question_id,
        e."offset",
        count(*) over so_far as total,
        count(*) filter (where p.prediction) over so_far as yes,
        round(avg(p.probability) over so_far, 2) as mean,
        count(*) filter (where e.id is null) over (partition by p.question_id) as lost
      from predictions p
      left join events e on e.id = p.event_id and e.event = 'prediction.placed'
      where p.question_id in (select question_id from consensus_snapshots)
        and not exists (select from outbox o where o.id = p.event_id)
      window so_far as (partition by p.question_id order by e."offset")
    ),
    given as (
      select
        p.question_id,
        e."offset",
        s.side,
        q.options[s.side + 1] as option,
        sum(s.given) over so_far as sum,
        (count(*) over so_far) * (cardinality(q.options) - 1) as whole
      from questions q
      join predictions p on p.question_id = q.id
      join events e on e.id = p.event_id and e.event = 'prediction.placed'
      cross join ${givenSides(tx)}
      where q.question_type = 'multi' and q.id in (select question_id from consensus_snapshots)
      window so_far as (partition by p.question_id, s.side order by e."offset")
    ),
    leaders as (
      select distinct on (question_id, "offset")
        question_id, "offset", option, round(sum::numeric / whole, 2)::float8 as mean
      from given
      order by question_id, "offset", sum desc, side
    ),
    compared as (
      select
        s.question_id,
        s.reason,
        s.moment,
        concat_ws(
          '/', s.consensus ->> 'total_predictions',
          case when q.question_type = 'binary' then s.consensus ->> 'yes_count' end,
          (s.consensus ->> 'mean_probability')::numeric::float8, s.consensus ->> 'offset',
          case when q.question_type = 'multi' and s.format > 1 then
            concat((s.consensus ->> 'forecast')::numeric::float8, s.consensus ->> 'leading_option')
          end
        ) as says,
        concat_ws(
          '/', coalesce(p.total, 0),
          case when q.question_type = 'binary' then coalesce(p.yes, 0) end,
          p.mean::float8, s."offset",
          case when q.question_type = 'multi' and s.format > 1 then concat(l.mean, l.option) end
        ) as wanted
      from consensus_snapshots s
      join questions q on q.id = s.question_id
      left join placed p on p.question_id = s.question_id and p."offset" = s."offset"
      left join leaders l on l.question_id = s.question_id and l."offset" = s."offset"
      where not exists (
        select from placed o where o.question_id = s.question_id and o.lost > 0
      )
    )
    select
      'the ' || reason || ' snapshot of question ' || question_id || ' of ' || moment || ' says '
      || says || ' instead of ' || wanted as what
    from compared
    where says is distinct from wanted
    order by question_id, moment, reason`,
];
