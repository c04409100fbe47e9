-- compat: end api and timer processes before it first: they name what is dropped here.

-- Lists of threads go along the upvotes themselves.
drop index comments_top;
create index comments_top on comments (upvotes desc, id desc)
  where parent_id is null and hidden_at is null;
drop index comments_debates;
create index comments_debates on comments (question_id, upvotes desc, id desc)
  where parent_id is null and hidden_at is null and replies > 0;

drop table unranked_comments;
alter table comments drop column ranked_upvotes;
