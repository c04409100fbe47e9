-- compat: programs before it run unchanged; the triggers do what they did.

-- One function for every table that is followed, instead of one each.
create or replace function note_change() returns trigger language plpgsql as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end
$$;

create or replace trigger agents_note_change
  before update of name, model, model_family, owner_id, key_digest, suspended_at on agents
  for each row execute function note_change();

create or replace trigger questions_note_change
  before insert or update on questions
  for each row execute function note_change();

drop function if exists note_agent_change, note_question_change;
