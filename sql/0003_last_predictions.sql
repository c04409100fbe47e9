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
