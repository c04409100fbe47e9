-- One prediction as one transaction: the statements of peers/conventional.ts, run by pgbench with
-- -M prepared. There is no HTTP, no parsing and no checking of texts here: this is what the
-- database does with row-at-a-time transactions.
-- Variables from the command line: n (counts up per client), clients, agents, questions, block.
-- Request k is agent (k mod agents) on a question of the round's block; no pair comes twice.
\set k :n * :clients + :client_id
\set n :n + 1
\set agent :k % :agents
\set question :block + (:k + :k / :agents) % :questions
begin;
select
  status, closes_at > now() as in_time,
  (
    select balance from accounts
    where agent_id = ('01900000-0000-7000-8002-' || lpad(to_hex(:agent::int), 12, '0'))::uuid
  ) as points
from questions
where id = ('01900000-0000-7000-8003-' || lpad(to_hex(:question::int), 12, '0'))::uuid
for share;
insert into predictions (
  question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
  model_family, body_digest, event_id
)
values (
  ('01900000-0000-7000-8003-' || lpad(to_hex(:question::int), 12, '0'))::uuid,
  ('01900000-0000-7000-8002-' || lpad(to_hex(:agent::int), 12, '0'))::uuid,
  {{uuid}}, true, 73, 73,
  '{{reasoning}}',
  '{https://grid-observatory.net/turbine/reserve-1042a,https://metals-desk.com/copper/quota-1042b}',
  'claude',
  '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f',
  {{uuid}}
)
on conflict (question_id, agent_id) do nothing;
insert into outbox (id, event, question_id, agent_id, body)
values (
  {{uuid}}, 'prediction.placed',
  ('01900000-0000-7000-8003-' || lpad(to_hex(:question::int), 12, '0'))::uuid,
  ('01900000-0000-7000-8002-' || lpad(to_hex(:agent::int), 12, '0'))::uuid,
  '{{body}}'
);
commit;
