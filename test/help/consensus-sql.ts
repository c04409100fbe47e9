import type { Sql } from '../../src/db/client.js';

/** The consensus of every question made by SQL alone, in the members and the order of the wire. */

interface Whole {
  readonly id: string;
  readonly question_type: 'binary' | 'multi';
  readonly total: number;
  readonly forecast: number | null;
  readonly leading_option: string | null;
  readonly yes: number;
  readonly yes_percent: number;
  readonly no_percent: number;
  readonly avg_confidence: number | null;
  readonly mean_probability: number | null;
  readonly median_probability: number | null;
  readonly p25: number | null;
  readonly p75: number | null;
  readonly histogram: readonly number[];
}

interface Row extends Whole {
  readonly options: readonly unknown[] | null;
  readonly breakdown: readonly unknown[];
}

/**
 * With options every prediction gives each of them something, here in percent · (options − 1). A
 * multi question counts as YES what is on the option with the highest mean, the first of equals.
 */
const readAll = (sql: Sql) => sql<Row[]>`
  with given as (
    select
      q.id as question_id,
      p.model_family,
      o.position,
      o.option,
      cardinality(q.options) - 1 as others,
      case
        when p.probabilities is not null then
          p.probabilities[o.position] * (cardinality(q.options) - 1)
        when p.selected_option + 1 = o.position then p.confidence * (cardinality(q.options) - 1)
        else 100 - p.confidence
      end as given
    from questions q
    cross join unnest(q.options) with ordinality as o (option, position)
    join predictions p on p.question_id = q.id
  ),
  means as (
    select
      question_id, option, position, sum(given) as sum,
      round(sum(given)::numeric / (others * count(*)), 2)::float8 as mean
    from given
    group by question_id, option, position, others
  ),
  family_means as (
    select question_id, model_family, json_agg(mean order by position) as option_probabilities
    from (
      select
        question_id, model_family, position,
        round(sum(given)::numeric / (others * count(*)), 2)::float8 as mean
      from given
      group by question_id, model_family, position, others
    ) family
    group by question_id, model_family
  ),
  top as (
    select distinct on (question_id)
      question_id, option as leading_option, position - 1 as selected_option, mean as forecast
    from means
    order by question_id, sum desc, position
  ),
  stated as (
    select
      p.*,
      coalesce(p.prediction, p.selected_option = l.selected_option) as yes,
      coalesce(p.probability, p.confidence) as value
    from predictions p
    left join top l using (question_id)
  ),
  families as (
    select
      question_id,
      json_agg(
        case
          when option_probabilities is null then json_build_object(
            'model_family', model_family,
            'count', count,
            'yes_percent', yes_percent,
            'avg_confidence', avg_confidence,
            'mean_probability', mean_probability
          )
          else json_build_object(
            'model_family', model_family,
            'count', count,
            'yes_percent', yes_percent,
            'avg_confidence', avg_confidence,
            'mean_probability', null,
            'option_probabilities', option_probabilities
          )
        end
        order by model_family collate "C"
      ) as breakdown
    from (
      select
        question_id,
        model_family,
        count(*) as count,
        round(100.0 * count(*) filter (where yes) / count(*), 2)::float8 as yes_percent,
        round(avg(confidence), 2)::float8 as avg_confidence,
        round(avg(probability), 2)::float8 as mean_probability
      from stated
      group by question_id, model_family
    ) family
    left join family_means using (question_id, model_family)
    group by question_id
  ),
  options as (
    select
      id,
      json_agg(json_build_object(
        'option', option,
        'count', count,
        'percent', case when total = 0 then 0 else round(100.0 * count / total, 2)::float8 end,
        'mean_probability', mean,
        'avg_confidence', avg_confidence
      ) order by position) as options
    from (
      select
        q.id,
        o.option,
        o.position,
        count(s.id) as count,
        round(avg(s.confidence), 2)::float8 as avg_confidence,
        (select count(*) from stated where question_id = q.id) as total,
        (select mean from means m where m.question_id = q.id and m.position = o.position) as mean
      from questions q
      cross join unnest(q.options) with ordinality as o (option, position)
      left join stated s on s.question_id = q.id and s.selected_option = o.position - 1
      group by q.id, o.option, o.position
    ) option
    group by id
  )
  select
    q.id,
    q.question_type,
    count(s.id)::integer as total,
    min(t.forecast) as forecast,
    min(t.leading_option) as leading_option,
    (count(*) filter (where s.yes))::integer as yes,
    coalesce(round(100.0 * count(*) filter (where s.yes) / nullif(count(s.id), 0), 2), 0)::float8
      as yes_percent,
    coalesce(round(100.0 * count(*) filter (where not s.yes) / nullif(count(s.id), 0), 2), 0)::float8
      as no_percent,
    round(avg(s.confidence), 2)::float8 as avg_confidence,
    round(avg(s.probability), 2)::float8 as mean_probability,
    percentile_cont(0.5) within group (order by s.probability) as median_probability,
    percentile_cont(0.25) within group (order by s.probability) as p25,
    percentile_cont(0.75) within group (order by s.probability) as p75,
    array(
      select count(b.id)::integer
      from generate_series(0, 9) as bin
      left join stated b on b.question_id = q.id and least(b.value / 10, 9) = bin
      group by bin
      order by bin
    ) as histogram,
    min(o.options::text)::json as options,
    coalesce(min(f.breakdown::text)::json, '[]') as breakdown
  from questions q
  left join stated s on s.question_id = q.id
  left join options o on o.id = q.id
  left join families f on f.question_id = q.id
  left join top t on t.question_id = q.id
  group by q.id, q.question_type`;

interface Pool {
  readonly id: string;
  readonly by_owner_mean: number | null;
  readonly effective_families: number;
  readonly extremized: number | null;
  readonly contested: boolean;
}

/**
 * The figures in which owners and families are capped, by the formulas of `capped-log-odds-1`.
 * Rounded to nine places first, as those of the service: a half is a half then.
 */
const readPools = (sql: Sql) => sql<Pool[]>`
  with stated as (
    select
      question_id,
      model_family,
      coalesce(owner_id, agent_id) as owner,
      coalesce(selected_option, prediction::integer) as side,
      coalesce(probability, confidence)::float8 as value,
      1::float8 / count(*) over (partition by question_id, coalesce(owner_id, agent_id)) as weight
    from predictions
  ),
  families as (
    select question_id, w / (1 + 0.25 * greatest(0, w - 1)) as v, sum_l / w as l
    from (
      select
        question_id,
        sum(weight) as w,
        sum(weight * ln(least(99, greatest(1, value)) / (100 - least(99, greatest(1, value)))))
          as sum_l
      from stated
      group by question_id, model_family
    ) as family
  ),
  pools as (
    select question_id, sum(v) ^ 2 / sum(v ^ 2) as n, sum(v * l) / sum(v) as pooled
    from families
    group by question_id
  ),
  owners as (
    select question_id, avg(mean) as mean, count(*) as count
    from (
      select question_id, avg(value) as mean from stated group by question_id, owner
    ) as owner
    group by question_id
  ),
  sides as (
    select question_id, array_agg(weight order by weight desc) as weights
    from (
      select question_id, round(sum(weight)::numeric, 9) as weight
      from stated
      group by question_id, side
    ) as side
    group by question_id
  )
  select
    q.id,
    case when q.question_type = 'binary' then round(round(o.mean::numeric, 9), 2)::float8 end
      as by_owner_mean,
    coalesce(round(round(p.n::numeric, 9), 2), 0)::float8 as effective_families,
    case when q.question_type = 'binary' then round(round((
      100 / (1 + exp(-p.pooled * 3 * p.n / (sqrt(3 * p.n ^ 2 - 3 * p.n + 1) + 2)))
    )::numeric, 9), 2)::float8 end as extremized,
    coalesce(o.count >= 5 and s.weights[2] * 2 >= s.weights[1], false) as contested
  from questions q
  left join pools p on p.question_id = q.id
  left join owners o on o.question_id = q.id
  left join sides s on s.question_id = q.id`;

export const consensusBySql = async (sql: Sql): Promise<ReadonlyMap<string, unknown>> => {
  const [rows, pools] = await Promise.all([readAll(sql), readPools(sql)]);
  const pool_of = new Map(pools.map(({ id, ...pool }) => [id, pool]));
  return new Map(
    rows.map(({ id, total, yes, options, breakdown, ...rest }) => [
      id,
      {
        question_id: id,
        question_type: rest.question_type,
        total_predictions: total,
        forecast: rest.forecast ?? pool_of.get(id)?.extremized ?? null,
        leading_option: rest.leading_option,
        yes_count: yes,
        no_count: total - yes,
        yes_percent: rest.yes_percent,
        no_percent: rest.no_percent,
        avg_confidence: rest.avg_confidence,
        mean_probability: rest.mean_probability,
        median_probability: rest.median_probability,
        p25: rest.p25,
        p75: rest.p75,
        histogram: rest.histogram,
        ...(options === null ? {} : { options }),
        model_breakdown: breakdown,
        ...pool_of.get(id),
        method: 'capped-log-odds-1',
      },
    ]),
  );
};
