-- compat: adds only; a program that does not know the column leaves it empty.

-- What stands for an agent in exports: a digest of its id under a key of the service, which fills
-- the column before an export.
alter table agents add column pseudonym text check (pseudonym ~ '^[0-9a-f]{32}$');
create index agents_without_pseudonym on agents (id) where pseudonym is null;
