-- compat: an older program can neither settle nor reopen questions on the result; end them first.
--
-- Scores are weighted by the time for which forecasts stood; families, models and the crowd of a
-- question have scores of their own.

-- Times in which a question was closed before it was reopened; they count for nobody. What was
-- reopened before this table: from the log and the record of admins.
create table closed_times (
  question_id uuid not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  primary key (question_id, from_at),
  check (from_at < to_at)
);
insert into closed_times (question_id, from_at, to_at)
select closed.question_id, closed.at, a.at
from audit_log a
cross join lateral (
  select e.question_id, max((e.body::json -> 'data' ->> 'closed_at')::timestamptz) as at
  from events e
  where e.question_id = a.subject_id::uuid
    and e.event = 'question.closed'
    and (e.body::json -> 'data' ->> 'closed_at')::timestamptz < a.at
  group by e.question_id
) closed
where a.act = 'question.reopen'
on conflict do nothing;

-- `known_at`: when the outcome became public, where that was stated. Rule 3 weights by time; with
-- one forecast it pays as rule 2. The sums of a question are made by the job, in memory.
-- `rescoring`: everybody is paid, and the scores are made anew.
alter table resolutions
  add column known_at timestamptz,
  alter column points_rule set default 3,
  drop constraint resolutions_points_rule_check,
  drop constraint resolutions_state_check,
  drop constraint resolutions_check3,
  drop column forecasters,
  drop column log_sum;
alter table resolutions
  add check (points_rule in (1, 2, 3)),
  add check (state in ('running', 'rescoring', 'done')),
  add check ((state = 'running') = (finished_at is null));
drop index resolutions_running;
create index resolutions_unfinished on resolutions (created_at) where state <> 'done';

-- By forecast, in their order: the probability (0..1) that the pool of everybody else put on what
-- happened just before it; null where there was none. `skill`: the Brier score of that pool less
-- that of the forecast, weighted by time.
alter table scores
  add column crowd double precision[],
  add column skill double precision;

-- Scores of forecasters that are several agents, or none: of a family and of a model, each of its
-- owners counting once; of the crowd (the headline consensus of each moment); of the even forecast.
-- As of the latest revision, written when all predictions of the question are settled.
create table group_scores (
  question_id uuid not null,
  kind text not null check (kind in ('family', 'model', 'crowd', 'even')),
  -- Of the family or the model; else the kind.
  name text not null,
  revision integer not null,
  category text not null,
  question_type text not null,
  n_options smallint not null,
  -- Agents whose forecasts counted; 0 for the even forecast.
  n_agents integer not null check (n_agents >= 0),
  -- The columns of `scores`; `stated` and `hit` are of the option that had most at the end.
  forecast double precision not null,
  stated smallint not null,
  correct boolean not null,
  hit boolean not null,
  brier double precision not null,
  log_score double precision not null,
  baseline double precision not null,
  -- Among the families, or the models; null for the others.
  relative double precision,
  resolved_at timestamptz not null,
  settled_at timestamptz not null,
  primary key (question_id, kind, name)
);
create index group_scores_name on group_scores (kind, name, resolved_at desc);

-- Log scores have another clamp, and groups have none yet: what is resolved is scored once more.
update resolutions r
set state = 'rescoring', cursor_agent = null, done = 0
from questions q
where q.id = r.question_id
  and q.revision = r.revision
  and r.kind = 'resolve'
  and r.state = 'done';
