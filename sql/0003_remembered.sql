-- compat: running programs keep working; an agent may use its sources twice while both versions run.

-- The last prediction of each agent. A batch locks the row to know that it was judged by all that the
-- agent has, and updates it: rows are small and most of a page stays free.
create table last_predictions (
  agent_id uuid primary key,
  prediction_id uuid
) with (fillfactor = 25);

insert into last_predictions (agent_id, prediction_id)
select
  a.id,
  (select p.id from predictions p where p.agent_id = a.id order by p.id desc limit 1)
from agents a;

create function begin_last_prediction() returns trigger language plpgsql as $$
begin
  insert into last_predictions (agent_id) values (new.id) on conflict do nothing;
  return null;
end
$$;
create trigger agents_begin_last_prediction after insert on agents
  for each row execute function begin_last_prediction();

-- Processes remember who a key belongs to until they read here that it changed.
alter table revocations
  drop constraint revocations_reason_check,
  add constraint revocations_reason_check check (reason in ('revoked', 'suspended', 'changed'));

create function note_agent_change() returns trigger language plpgsql as $$
begin
  insert into revocations (digest, reason) values (old.key_digest, 'changed');
  return null;
end
$$;
create trigger agents_note_change
  after update of name, model, model_family, owner_id, key_digest, suspended_at on agents
  for each row
  when (
    (old.name, old.model, old.model_family, old.owner_id, old.key_digest, old.suspended_at)
    is distinct from
    (new.name, new.model, new.model_family, new.owner_id, new.key_digest, new.suspended_at)
  )
  execute function note_agent_change();
