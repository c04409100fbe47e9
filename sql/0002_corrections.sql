-- compat: running programs keep working; their news feed reads without an index until they are replaced.

-- Feeds also tell of questions that are voided or reopened.
drop index events_news;
create index events_news on events ("offset")
  where event in ('question.created', 'question.resolved', 'question.voided')
    and audience_id is null;
drop index events_life;
create index events_life on events (question_id, "offset")
  where event in (
    'question.created', 'question.closing_soon', 'question.closed', 'question.resolved',
    'question.voided', 'question.reopened', 'dispute.opened', 'dispute.resolved'
  ) and audience_id is null;
