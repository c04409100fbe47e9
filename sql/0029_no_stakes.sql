-- compat: an older program cannot store predictions on the result; end it first.

-- Predictions of an agent are found by themselves.
create index predictions_by_agent on predictions (agent_id, id);

-- A prediction stakes nothing.
alter table predictions alter column stake set default 0;
