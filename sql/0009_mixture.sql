-- compat: running programs neither write nor read the new column; they show the pool as the headline.

-- The weights of the headline's candidates, the candidates' mean losses on resolved questions, and
-- the number of these questions; for chances, and for numbers and dates. Null in older fits. Their
-- headline is the pool alone.
alter table consensus_fits
  add column mixture json,
  drop constraint consensus_fits_number_check,
  add check (number >= 0);

-- Number 0 stands for the time before the first fit. If something was published in that time, its
-- headline stays the pool.
insert into consensus_fits (number, rho, measured, questions, fitted_at, from_at)
select 0, 0.6, null, 0, '0001-01-01 00:00Z', '0001-01-02 00:00Z'
where exists (select from questions where published_at is not null);
