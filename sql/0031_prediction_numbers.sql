-- compat: an older program stores predictions on the result, unless two processes number alike.

-- What has no number is numbered after the others.
update predictions p
set seq = n.seq
from (
  select
    p.question_id, p.agent_id,
    s.seq + row_number() over (partition by p.question_id order by p.id) as seq
  from predictions p
  join question_seqs s on s.question_id = p.question_id
  where p.seq = 0
) as n
where p.question_id = n.question_id and p.agent_id = n.agent_id;
update question_seqs s
set seq = last.seq
from (select question_id, max(seq) as seq from predictions group by question_id) as last
where s.question_id = last.question_id and s.seq < last.seq;

-- A batch that numbers predictions wrongly is refused. 0: stored by other means, and not compared.
drop index predictions_by_seq;
create unique index predictions_by_seq on predictions (question_id, seq) where seq > 0;
