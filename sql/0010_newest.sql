-- compat: running programs keep working; they sort the predictions of a question without an index until they are replaced.

-- Lists called newest are in the order of the forecasts' times: of the last revision, or of the
-- time at which an imported forecast was made.
create index predictions_newest on predictions (
  question_id, (coalesce(revised_at, created_at)) desc, id desc
);
create index predictions_newest_of_agent on predictions (
  agent_id, (coalesce(revised_at, created_at)) desc, id desc
);
drop index predictions_by_question;
