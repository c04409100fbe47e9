-- compat: adds only; what a program that does not know it stores counts as an owner of its own.

-- The owner of the agent when it predicted: one person's agents share one weight in the consensus,
-- whatever is linked or unlinked later. Beside the event too, for whoever follows the log, and
-- never in its body: who owns an agent is not public.
alter table predictions add column owner_id uuid;
update predictions p set owner_id = a.owner_id from agents a where a.id = p.agent_id;
alter table outbox add column owner_id uuid;
alter table events add column owner_id uuid;

-- The offset of the newest prediction of the question in the log.
alter table question_counts add column prediction_offset bigint not null default 0;
update question_counts c
set prediction_offset = e.newest
from (
  select question_id, max("offset") as newest
  from events
  where event = 'prediction.placed'
  group by question_id
) e
where e.question_id = c.question_id;
