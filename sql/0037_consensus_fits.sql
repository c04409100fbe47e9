-- compat: an older program goes on writing snapshots of format 2, which a newer one makes anew.

-- How the errors of two owners correlate, as measured once a day on resolved questions. A fit is in
-- force from a moment at which every process knows it, until the next one is.
create table consensus_fits (
  number integer primary key check (number > 0),
  rho double precision not null check (rho between 0 and 0.99),
  -- Before it was drawn towards where it begins.
  measured double precision,
  -- On so many questions.
  questions integer not null check (questions >= 0),
  fitted_at timestamptz not null,
  from_at timestamptz not null,
  check (from_at > fitted_at)
);

-- Format 3: `pooled`, `effective_forecasters`, and the fit, in place of what was extremised.
drop index consensus_snapshots_outdated;
create index consensus_snapshots_outdated on consensus_snapshots (question_id, moment, reason)
  where format < 3;
