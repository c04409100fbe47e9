-- compat: running programs keep working; they give no event a connection and deliver parked ones too.

alter table consumer_events
  -- What it was given over: with its end the event is free again.
  add column connection uuid,
  -- Delivered in vain as often as its consumer allows; nobody gets it before it is put back.
  add column parked_at timestamptz;
alter table consumers
  add column max_deliveries smallint check (max_deliveries between 1 and 100);
