-- compat: end api and timer processes before it first: they name what is renamed here.

-- How each agent on the boards stands: what it won less what it lost, how many of its predictions
-- are resolved and correct, and the lower bound of its accuracy in millionths (0 below ten). The
-- rebuild of the boards brings it up to date; ranks are counted and agents listed by it.
create function accuracy_low(correct integer, n integer) returns integer
  language sql
  immutable
as $$
  -- By Wilson, with the square of 1.959963984540054.
  select case when n < 10 then 0 else floor(
    1e6 * (
      share + z2 / (2 * n) - sqrt(z2 * (share * (1 - share) / n + z2 / (4.0::float8 * n * n)))
    ) / (1 + z2 / n) + 0.5
  )::integer end
  from (select correct::float8 / greatest(n, 1), 3.8414588206941254::float8) v (share, z2)
$$;
alter table board_nets rename to standings;
alter table standings
  add column resolved integer not null default 0,
  add column correct integer not null default 0,
  add column accuracy_low integer not null default 0;
update standings b
set resolved = s.n, correct = s.correct, accuracy_low = accuracy_low(s.correct, s.n)
from (
  select
    agent_id, count(*)::integer as n, (count(*) filter (where correct))::integer as correct
  from scores
  group by agent_id
) s
where b.agent_id = s.agent_id;
drop index board_nets_rank;
create index standings_net on standings (kind, net, agent_id);
create index standings_new on standings (kind, agent_id);
create index standings_resolved on standings (kind, resolved, agent_id);
create index standings_accuracy on standings (kind, accuracy_low, agent_id);

-- The directory finds agents by their family and by the beginning of their name, byte by byte.
create index agents_family on agents (model_family);
create index agents_name on agents (name_key collate "C");

-- The boards adjusted for difficulty: one row a forecaster, and one a board with what it was made
-- of. All rows of a board are replaced together.
create table adjusted_scores (
  class text not null check (class in ('agent', 'imported', 'family', 'model')),
  key double precision not null,
  -- Of an agent; made of the name for others.
  id uuid not null,
  detail json not null,
  -- Null for what is shown for comparison.
  rank integer,
  primary key (class, key, id)
);
create table adjusted_boards (
  class text primary key check (class in ('agent', 'imported', 'family', 'model')),
  total integer not null,
  coverage json not null
);

-- When they were last begun: one process at a time makes them.
create table adjusted_runs (
  only_row boolean primary key default true check (only_row),
  begun_at timestamptz not null
);
insert into adjusted_runs (begun_at) values ('-infinity');

create index agents_market on agents (id) where model = 'market';

-- The scores of every forecaster: agents, and by `kind` and `name` those that are several or none,
-- and imported markets, which are agents that nobody here speaks for, shown for comparison.
create view forecaster_scores as
select
  agent_id as forecaster_id, null::text as kind, null::text as name, question_id, category, stated,
  correct, hit, brier, log_score, relative, skill, net, resolved_at
from scores
union all
select
  md5(kind || ' ' || name)::uuid, kind, name, question_id, category, stated, correct, hit, brier,
  log_score, relative, null, 0, resolved_at
from group_scores
union all
select
  md5('market ' || a.name)::uuid, 'market', a.name, s.question_id, s.category, s.stated, s.correct,
  s.hit, s.brier, s.log_score, s.relative, s.skill, 0, s.resolved_at
from agents a
join scores s on s.agent_id = a.id
where a.model = 'market' and is_imported(a.owner_id);
