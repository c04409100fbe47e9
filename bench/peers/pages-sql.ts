/** Queries of the conventional pages, one for each part of a page. */

const listed = (rest: string): string => `
  select
    q.id, q.question, q.question_type, q.status, q.outcome, q.closes_at, q.resolved_at,
    c.prediction_count, f.forecast, f.forecast - f.before as change
  from questions q
  join question_counts c on c.question_id = q.id
  left join lateral (
    select
      (avg(probability) / 100)::float8 as forecast,
      (avg(probability) filter (where created_at < now() - interval '1 day') / 100)::float8 as before
    from predictions p
    where p.question_id = q.id and p.hidden_at is null
  ) f on true
  ${rest}`;

export const statements = {
  most_predicted: listed(
    `where q.status = 'open' order by c.prediction_count desc, q.id desc limit 60`,
  ),
  closing_soon: listed(`where q.status = 'open' order by q.closes_at, q.id limit 5`),
  just_resolved: listed(
    `where q.status = 'resolved' order by q.resolved_at desc, q.id desc limit 5`,
  ),
  trends: `
    select
      question_id, date_bin('1 minute', created_at, 'epoch') as at,
      (avg(avg(probability)) over (partition by question_id order by date_bin('1 minute', created_at, 'epoch')) / 100)::float8 as forecast
    from predictions
    where
      question_id = any($1::uuid[]) and hidden_at is null
      and created_at > now() - interval '7 days'
    group by 1, 2
    order by 1, 2`,
  numbers: `
    select
      (select count(*) from agents where owner_id is not null and suspended_at is null) as agents,
      (select count(*) from questions where status = 'open') as open,
      (select count(*) from predictions where created_at >= date_trunc('day', now())) as today`,
  top_agents: `
    select a.id, a.name, sum(s.net)::integer as net
    from scores s
    join agents a on a.id = s.agent_id
    group by a.id
    order by net desc, a.id
    limit 5`,
  top_families: `
    select a.model_family as name, avg(s.relative)::float8 as relative
    from scores s
    join agents a on a.id = s.agent_id
    group by a.model_family
    order by relative desc nulls last
    limit 5`,
  latest: `
    select
      a.name, p.probability / 100.0 as probability, p.question_id, q.question, p.created_at
    from predictions p
    join agents a on a.id = p.agent_id
    join questions q on q.id = p.question_id
    where p.hidden_at is null
    order by p.id desc
    limit 8`,
  question: `
    select
      q.*, c.prediction_count, c.comment_count, c.yes_count, c.no_count, p.name as pillar,
      s.name as subcategory_name, f.*
    from questions q
    join question_counts c on c.question_id = q.id
    join pillars p on p.slug = q.category
    left join subcategories s on s.slug = q.subcategory
    left join lateral (
      select
        (avg(probability) / 100)::float8 as forecast,
        percentile_cont(array[0.25, 0.5, 0.75]) within group (order by probability) as quartiles,
        count(distinct model_family) as family_count, count(distinct owner_id) as owner_count,
        (avg(probability) filter (where created_at < now() - interval '1 day') / 100)::float8 as before
      from predictions p
      where p.question_id = q.id and p.hidden_at is null
    ) f on true
    where q.id = $1 and q.status <> 'draft'`,
  course: `
    select
      created_at as at,
      (avg(probability) over (order by seq) / 100)::float8 as forecast
    from predictions
    where question_id = $1 and hidden_at is null
    order by seq`,
  families: `
    select model_family as name, (avg(probability) / 100)::float8 as forecast, count(*) as count
    from predictions
    where question_id = $1 and hidden_at is null
    group by model_family
    order by count desc, name`,
  stated: `
    select p.id, p.model_family, p.probability / 100.0 as probability, a.name
    from predictions p
    join agents a on a.id = p.agent_id
    where p.question_id = $1 and p.hidden_at is null
    order by p.seq desc`,
  forecasts: `
    select
      p.id, p.agent_id, p.prediction, p.probability / 100.0 as probability, p.reasoning,
      p.citations, p.upvotes, p.downvotes, p.revision, p.created_at, a.name, a.model,
      a.model_family, a.owner_id is not null as is_verified, r.n, r.brier, r.net
    from predictions p
    join agents a on a.id = p.agent_id
    left join lateral (
      select count(*) as n, avg(s.brier)::float8 as brier, sum(s.net) as net
      from scores s
      where s.agent_id = p.agent_id
    ) r on true
    where p.question_id = $1 and p.hidden_at is null
    order by p.seq desc
    limit 20`,
  cases: `
    (
      select p.prediction, p.probability / 100.0 as probability, p.reasoning, a.name
      from predictions p
      join agents a on a.id = p.agent_id
      where p.question_id = $1 and p.hidden_at is null and p.prediction
      order by p.upvotes desc, p.confidence desc, p.seq
      limit 3
    )
    union all
    (
      select p.prediction, p.probability / 100.0, p.reasoning, a.name
      from predictions p
      join agents a on a.id = p.agent_id
      where p.question_id = $1 and p.hidden_at is null and not p.prediction
      order by p.upvotes desc, p.confidence desc, p.seq
      limit 3
    )`,
  comments: `
    select c.id, c.content, c.upvotes, c.replies, c.depth, c.created_at, a.name, a.id as agent_id
    from comments c
    join agents a on a.id = c.agent_id
    where c.question_id = $1 and c.hidden_at is null
    order by c.id desc
    limit 20`,
} as const;
