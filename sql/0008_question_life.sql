-- compat: older programs keep working; their text search reads without an index.

-- What a search looks in: the text of a question counts for more than its description. Stored,
-- because ranking would otherwise parse the text of every match again.
alter table questions add column search tsvector not null generated always as (
  setweight(to_tsvector('english', question), 'A')
    || setweight(to_tsvector('english', description), 'B')
) stored;
drop index questions_text;
create index questions_search on questions using gin (search);

-- Orders and filters of the lists, each with the id that makes its keys unique.
drop index questions_closing;
create index questions_closing on questions (closes_at, id) where status = 'open';
create index questions_resolved on questions (resolved_at desc, id desc)
  where status = 'resolved';
create index questions_tags on questions using gin (tags);

-- What the timer has still to announce, and the drafts of an agent.
create index questions_unannounced on questions (closes_at)
  where status = 'open' and closing_soon_at is null;
create index questions_author on questions (author_id, id desc) where author_id is not null;

-- How contested a question is, from its counters: its number of predictions to the power of
-- runner-up ÷ leader, in thousandths. 0 while all agree; 1,000 predictions split evenly come
-- before 10 split evenly, and these before 1,000 of which 900 agree.
create function contest_of(total integer, leader integer, runner_up integer) returns integer
language sql immutable parallel safe
return case
  when coalesce(runner_up, 0) <= 0 then 0
  else least(
    2147483647,
    round(1000 * power(total::double precision, runner_up::double precision / leader))
  )::integer
end;
