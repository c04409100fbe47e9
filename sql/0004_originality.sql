-- compat: adds only.
--
-- What an older program stores is not compared with predictions that api processes hold in memory
-- already.
--
-- Predictions of one question have growing numbers in the order of their commits, from 1, so that
-- an api process knows which of them it has compared a new one with. 0: stored otherwise.
alter table predictions add column seq integer not null default 0 check (seq >= 0);
update predictions p
set seq = n.seq
from (
  select question_id, agent_id, row_number() over (partition by question_id order by id) as seq
  from predictions
) as n
where p.question_id = n.question_id and p.agent_id = n.agent_id;
create index predictions_by_seq on predictions (question_id, seq);

-- The last number given on a question; locked by whoever gives the next. Small rows with room on
-- the page, because each group commit moves them.
create table question_seqs (
  question_id uuid primary key,
  seq integer not null check (seq >= 0)
) with (fillfactor = 25);
insert into question_seqs (question_id, seq)
select question_id, max(seq)
from predictions
group by question_id;

-- Every question has its row from the beginning: begun with the first prediction, the row of each
-- new question would be a commit that its first predictions wait for.
create function begin_question_seq() returns trigger language plpgsql as $$
begin
  insert into question_seqs (question_id, seq) values (new.id, 0) on conflict do nothing;
  return null;
end
$$;
create trigger questions_begin_seq after insert on questions
  for each row execute function begin_question_seq();
insert into question_seqs (question_id, seq) select id, 0 from questions on conflict do nothing;
