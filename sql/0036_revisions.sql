-- compat: an older program stores no predictions on the result, because it names no revision.
--
-- A prediction has its latest forecast; those before it are kept with the times from which they
-- stood. Its reasoning, `created_at` and `event_id` are those of the placing.

alter table predictions
  add column revision smallint not null default 0 check (revision between 0 and 200),
  add column revised_at timestamptz,
  add column revision_reason text check (char_length(revision_reason) <= 2000),
  add column revision_event_id uuid,
  add check (
    (revision = 0) = (revised_at is null) and (revision = 0) = (revision_event_id is null)
  );
alter table predictions alter column revision drop default;

create table earlier_forecasts (
  question_id uuid not null,
  agent_id uuid not null,
  -- 0: the one it was placed with.
  revision smallint not null check (revision between 0 and 199),
  prediction boolean,
  probability smallint check (probability between 0 and 10000),
  confidence smallint not null check (confidence between 0 and 10000),
  selected_option smallint check (selected_option between 0 and 9),
  probabilities smallint[],
  reason text check (char_length(reason) <= 2000),
  event_id uuid not null,
  -- From when it stood; until the next one.
  created_at timestamptz not null,
  primary key (question_id, agent_id, revision)
);

-- Every forecast that stands or stood.
create view forecasts as
select
  question_id, agent_id, id as prediction_id, owner_id, model_family, revision, prediction,
  probability, confidence, selected_option, probabilities, revision_reason as reason,
  coalesce(revision_event_id, event_id) as event_id,
  coalesce(revised_at, created_at) as forecast_at
from predictions
union all
select
  e.question_id, e.agent_id, p.id, p.owner_id, p.model_family, e.revision, e.prediction,
  e.probability, e.confidence, e.selected_option, e.probabilities, e.reason, e.event_id,
  e.created_at
from earlier_forecasts e
join predictions p on p.question_id = e.question_id and p.agent_id = e.agent_id;
