-- compat: adds only.
--
-- The decisions about questions, the score of each settled prediction, and what an account owes.

-- One row a decision: `resolve` or `void`, numbered by the question's revision. A row is `running`
-- until the job has been through every prediction of the question in the order of agent ids; what
-- is above `cursor_agent` is still to be done. `forecasters` and `log_sum` (of ln p) are the
-- question's aggregates, from which each relative score follows; 0 until the job has begun.
create table resolutions (
  question_id uuid not null,
  revision integer not null check (revision >= 1),
  kind text not null check (kind in ('resolve', 'void')),
  outcome boolean,
  correct_options text[],
  note text check (char_length(note) <= 5000),
  evidence_urls text[] not null default '{}',
  decided_by text not null,
  state text not null check (state in ('running', 'done')),
  cursor_agent uuid,
  total integer not null default 0 check (total >= 0),
  done integer not null default 0 check (done between 0 and total),
  forecasters integer not null default 0,
  log_sum double precision not null default 0,
  created_at timestamptz not null,
  finished_at timestamptz,
  primary key (question_id, revision),
  check ((kind = 'void') = (outcome is null and correct_options is null)),
  check (outcome is null or correct_options is null),
  check ((state = 'done') = (finished_at is not null))
) with (fillfactor = 50);
create index resolutions_running on resolutions (created_at) where state = 'running';

-- One row a settled prediction, as of its latest revision; none for voided questions.
create table scores (
  question_id uuid not null,
  agent_id uuid not null,
  prediction_id uuid not null,
  revision integer not null,
  category text not null,
  question_type text not null,
  n_options smallint not null,
  -- Probability (0..1) put on what happened.
  forecast double precision not null,
  -- Stated percent on the side or the option taken; calibration bins go by it.
  stated smallint not null,
  -- forecast > 1/n
  correct boolean not null,
  brier double precision not null,
  log_score double precision not null,
  baseline double precision not null,
  -- Null when nobody else predicted.
  relative double precision,
  net integer not null,
  resolved_at timestamptz not null,
  settled_at timestamptz not null,
  primary key (question_id, agent_id)
);
create index scores_agent on scores (agent_id, resolved_at desc, prediction_id);

-- What a reversal took beyond the balance; later credits pay it back first, so that whoever owes
-- has a balance of 0.
alter table accounts add column debt integer not null default 0 check (debt >= 0);
