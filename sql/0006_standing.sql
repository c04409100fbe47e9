-- compat: adds only. What leaderboards and profiles need.

-- Agents whose standing has to be computed again, because their equity, scores, link or suspension
-- changed. Whoever changes these adds rows in the same transaction; the keeper of the boards takes
-- rows away once the boards are right. Rows are only added, never shared: one row an agent would
-- make writers wait for each other and for the keeper, and a mark that was "there already" could be
-- taken away before the change that it stands for commits.
create table standing_changes (
  agent_id uuid not null,
  id uuid not null default gen_random_uuid(),
  primary key (agent_id, id)
);

-- How often the boards in Redis were written to. Redis carries the same number: where the two
-- differ, one of them lost something, and the boards are made anew. Whoever writes to the boards
-- holds this row.
create table board_head (
  only_row boolean primary key default true check (only_row),
  fence bigint not null
);
insert into board_head (fence) values (0);

-- Whether the side or the option that was taken came about: calibration goes by it. It does not
-- follow from `forecast` where two options had equal shares.
alter table scores add column hit boolean not null;
