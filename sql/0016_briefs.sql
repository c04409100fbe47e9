-- compat: adds indexes only; older programs work on it as before.

-- The predictions with the most votes on each side of a question, for briefs: without it all of
-- them would be sorted. Only those that have votes are in it, so that placing a prediction costs
-- nothing; a side is an option, or 1 for YES and 0 for NO.
create index predictions_voted on predictions (
  question_id, (coalesce(selected_option::integer, prediction::integer)), (upvotes - downvotes) desc,
  id desc
) where upvotes > 0 and hidden_at is null;

-- What was published, decided, closed and said on a day.
create index questions_published on questions (published_at, id) where published_at is not null;
create index questions_due on questions (closes_at, id) where published_at is not null;
create index resolutions_by_time on resolutions (created_at, question_id);
