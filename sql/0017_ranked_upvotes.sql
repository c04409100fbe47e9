-- compat: programs before it move upvotes without saying so; stop their api processes first.

-- Lists of threads by upvotes go along this column, which follows `upvotes` a little later and for
-- many votes at once. A vote that changes no indexed column writes no index of `comments`: it takes
-- a third less of Postgres. Threads where the two differ stand in `unranked_comments`, and a list
-- puts them where they belong, so it is exact at every moment. Who moves `upvotes` adds that row
-- while it holds the comment, and who takes the row away holds the comment too.
alter table comments add column ranked_upvotes integer not null default 0;
update comments set ranked_upvotes = upvotes where upvotes <> 0;

drop index comments_top;
create index comments_top on comments (ranked_upvotes desc, id desc)
  where parent_id is null and hidden_at is null;
drop index comments_debates;
create index comments_debates on comments (question_id, ranked_upvotes desc, id desc)
  where parent_id is null and hidden_at is null and replies > 0;

create table unranked_comments (
  question_id uuid not null,
  id uuid not null,
  primary key (question_id, id)
);
