-- compat: programs before it run unchanged; what they change is noted as well.

-- In which transaction a question was made or last changed, as `agents.changed_in`: api processes
-- that remember questions follow it.
alter table questions add column changed_in xid8;
create index questions_changed on questions (changed_in) where changed_in is not null;

create function note_question_change() returns trigger language plpgsql as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end
$$;

create trigger questions_note_change
  before insert or update on questions
  for each row execute function note_question_change();
