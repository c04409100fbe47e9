-- compat: running programs keep working, with or without these indexes.

-- Find the forecasts of a day over all questions. They do not make a revision write more: Postgres
-- keeps the new row on its page even though the column is in such an index.
create index predictions_revised on predictions
  using brin (revised_at timestamptz_minmax_multi_ops) with (pages_per_range = 32);
create index earlier_forecasts_created on earlier_forecasts
  using brin (created_at timestamptz_minmax_multi_ops) with (pages_per_range = 32);
