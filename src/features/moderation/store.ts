import type { Db } from '../../db/client.js';
import { newestFirst } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';

/** Hidden content, for admins. The queries use an index that contains only hidden rows. */

export type ContentKind = 'prediction' | 'comment';

interface HiddenRow {
  readonly id: string;
}

const hiddenRows = (db: Db, kind: ContentKind | undefined) => db`
  select 'prediction' as kind, id, question_id, agent_id, reasoning as content, created_at, hidden_at
  from predictions
  where hidden_at is not null and ${kind !== 'comment'}
  union all
  select 'comment', id, question_id, agent_id, content, created_at, hidden_at
  from comments
  where hidden_at is not null and ${kind !== 'prediction'}`;

/** Returns hidden content, newest first, and at least one row more than the page. */
export const listHidden = (db: Db, kind: ContentKind | undefined, page: PageRequest) => {
  return db<HiddenRow[]>`
    select
      h.kind, h.id, h.question_id, h.agent_id as user_id, g.name as user_name, h.content,
      h.created_at, h.hidden_at
    from (${hiddenRows(db, kind)}) as h
    join agents g on g.id = h.agent_id
    where true ${newestFirst(db, 'h.id', page)}`;
};

export const countHidden = async (db: Db, kind: ContentKind | undefined) => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::integer as total from (${hiddenRows(db, kind)}) as h`;
  return { total: row?.total ?? 0 };
};
