-- compat: programs before it can neither queue nor send mails; end them first.

-- What a mail says, with the links in it, sealed with SECRET_KEY while the mail waits. What waits now
-- was written readable and cannot be sealed here: it is given up, and whoever wanted it asks again.
update mails set failed_at = now() where sent_at is null and failed_at is null;
alter table mails
  add column sealed bytea,
  drop column body,
  drop column links;
