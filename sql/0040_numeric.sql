-- compat: an older program takes a question for a number for one with options; end it before one is asked.
--
-- Questions whose outcome is a number or a date, and forecasts of it as cumulative distributions.

-- Of a number or a date: its range and what it came to. Dates are milliseconds since 1970.
alter table questions
  drop constraint questions_question_type_check,
  drop constraint questions_check7,
  add column range_min double precision,
  add column range_max double precision,
  add column unit text check (char_length(unit) between 1 and 40),
  -- Whether the outcome may lie below, or above.
  add column open_min boolean not null default false,
  add column open_max boolean not null default false,
  add column outcome_value double precision,
  add check (question_type in ('binary', 'multi', 'numeric', 'date')),
  add check (
    (question_type in ('numeric', 'date')) = (range_min is not null and range_max is not null)
  ),
  add check (range_min < range_max and range_max - range_min < 'infinity'),
  add check (range_min is not null or not (open_min or open_max)),
  add check (unit is null or question_type = 'numeric'),
  add check (outcome_value is null or range_min is not null),
  add check (status <> 'resolved' or num_nonnulls(outcome, correct_options, outcome_value) = 1);

alter table resolutions
  drop constraint resolutions_check1,
  drop constraint resolutions_check2,
  add column outcome_value double precision,
  add check (
    num_nonnulls(outcome, correct_options, outcome_value) = case kind when 'void' then 0 else 1 end
  );

-- v0, p0, v1, p1, … from the least value of the range to its greatest: the chance p (0..1) that the
-- outcome is v or less. Linear between; two equal values are a jump.
alter table predictions
  drop constraint predictions_check1,
  drop constraint predictions_check2,
  add column cdf double precision[] check (
    cardinality(cdf) between 4 and 404 and cardinality(cdf) % 2 = 0
  ),
  add check (num_nonnulls(prediction, selected_option, cdf) = 1),
  add check (probabilities is null or selected_option is not null);
alter table earlier_forecasts add column cdf double precision[];

-- Of such a question: the CRPS, 0 to 1 on the range, weighted by time; there are no chances to score.
alter table scores
  alter column forecast drop not null,
  alter column brier drop not null,
  alter column log_score drop not null,
  alter column baseline drop not null,
  add column crps double precision,
  add check (num_nonnulls(crps, brier) = 1);

drop view forecasts;
create view forecasts as
select
  question_id, agent_id, id as prediction_id, owner_id, model_family, revision, prediction,
  probability, confidence, selected_option, probabilities, cdf, revision_reason as reason,
  coalesce(revision_event_id, event_id) as event_id,
  coalesce(revised_at, created_at) as forecast_at
from predictions
union all
select
  e.question_id, e.agent_id, p.id, p.owner_id, p.model_family, e.revision, e.prediction,
  e.probability, e.confidence, e.selected_option, e.probabilities, e.cdf, e.reason, e.event_id,
  e.created_at
from earlier_forecasts e
join predictions p on p.question_id = e.question_id and p.agent_id = e.agent_id;
