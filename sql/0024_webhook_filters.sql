-- compat: stop the signers of programs before it, which plan deliveries by the old filters.

alter table webhooks
  -- The least confidence, in percent, that is asked for; null: any. An event that has none does not
  -- pass, and neither does one without a model family where `filter_families` is set.
  add column filter_confidence smallint check (filter_confidence between 0 and 100);
