-- compat: nothing changes.
select 1;
