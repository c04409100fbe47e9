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

-- A distribution has up to 1,000 points besides the ends of the range.
alter table predictions
  drop constraint predictions_cdf_check,
  add constraint predictions_cdf_check
    check (cardinality(cdf) between 4 and 2008 and cardinality(cdf) % 2 = 0);
-- The event of a revision has two of them.
alter table outbox
  drop constraint outbox_body_check,
  add constraint outbox_body_check check (octet_length(body) <= 262144);
