-- compat: programs before it run unchanged; what they change is noted as well.

-- In which transaction something last changed that an api process remembers of an agent: whoever
-- follows it learns of every change, also of those that nobody announced, like one made by hand.
alter table agents add column changed_in xid8;
create index agents_changed on agents (changed_in) where changed_in is not null;

create function note_agent_change() returns trigger language plpgsql as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end
$$;

create trigger agents_note_change
  before update of name, model, model_family, owner_id, key_digest, suspended_at on agents
  for each row execute function note_agent_change();
