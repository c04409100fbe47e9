-- compat: running programs keep working, with or without these indexes.

-- Find the forecasts of a day over all questions. They cost next to nothing to maintain, and from
-- Postgres 16 on a revision does not write to the other indexes because of them.
create index predictions_revised on predictions
  using brin (revised_at timestamptz_minmax_multi_ops) with (pages_per_range = 32);
create index earlier_forecasts_created on earlier_forecasts
  using brin (created_at timestamptz_minmax_multi_ops) with (pages_per_range = 32);
