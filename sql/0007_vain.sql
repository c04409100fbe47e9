-- compat: running programs keep working; they park by the number of deliveries.

alter table consumer_events
  -- How often it was delivered in vain; a lost connection adds a tenth.
  add column vain numeric(6, 1) not null default 0;
