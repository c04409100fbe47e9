import type { Db } from '../../db/client.js';

/** Number of published questions on each page of the sitemap. */
export const per_page = 2_000;

/** Returns the first id of each page. New questions do not change the earlier pages. */
export const readPageStarts = (db: Db) => db<{ id: string }[]>`
  select id
  from (
    select id, row_number() over (order by id) as place from questions where status <> 'draft'
  ) numbered
  where place % ${per_page} = 1
  order by id
  limit 1000`;

export const readSitemapPage = (db: Db, from: string) => db<{ id: string; updated_at: Date }[]>`
  select id, updated_at
  from questions
  where status <> 'draft' and id >= ${from}
  order by id
  limit ${per_page}`;
