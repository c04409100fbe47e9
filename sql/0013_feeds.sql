-- compat: adds indexes only; older programs work on it as before.

-- The newest of a few rare kinds of events, found without passing by predictions and comments.
create index events_news on events ("offset")
  where event in ('question.created', 'question.resolved') and audience_id is null;
create index events_life on events (question_id, "offset")
  where event in (
    'question.created', 'question.closing_soon', 'question.closed', 'question.resolved',
    'dispute.opened', 'dispute.resolved'
  ) and audience_id is null;
