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

-- A person whose address is not verified owns no webhooks and no consumers.
delete from webhooks w
using humans h
where w.owner_kind = 'human' and w.owner_id = h.id and h.email_verified_at is null;
delete from consumers c
using humans h
where c.human_id = h.id and h.email_verified_at is null;
