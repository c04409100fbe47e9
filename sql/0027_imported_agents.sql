-- compat: adds only; an older program ranks imported agents among the others.

-- Whether an agent came with an import: all of these have one owner, who is nobody (see
-- `import_owner_id` in src/features/humans). Boards keep them apart.
create function is_imported(owner_id uuid) returns boolean
  language sql
  immutable
  strict
as $$
  select owner_id = '00000000-0000-7000-8000-000000000001'::uuid
$$;
