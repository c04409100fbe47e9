import type { PageAsk } from '../../kit/page.js';
import type { Db } from '../../kit/pg/client.js';
import type { ContentKind } from './schema.js';

/** What is hidden, for admins: along an index of hidden rows only. */

export interface HiddenContent {
  readonly kind: ContentKind;
  readonly id: string;
  readonly question_id: string;
  readonly user_id: string;
  readonly user_name: string;
  readonly content: string;
  readonly created_at: Date;
  readonly hidden_at: Date;
}

/** Newest first, by when it was written; one row more than the page. */
export const listHidden = (db: Db, kind: ContentKind | undefined, page: PageAsk) => {
  const after = (page.after?.[0] ?? null) as string | null;
  const most = page.limit + 1 + page.offset;
  const seek = after === null ? db`` : db`and id < ${after}::uuid`;
  const part = (wanted: ContentKind) =>
    kind === undefined || kind === wanted ? db`and true` : db`and false`;
  return db<HiddenContent[]>`
    select
      h.kind, h.id, h.question_id, h.agent_id as user_id, g.name as user_name, h.content,
      h.created_at, h.hidden_at
    from (
      (
        select
          'prediction' as kind, id, question_id, agent_id, reasoning as content, created_at,
          hidden_at
        from predictions
        where hidden_at is not null ${part('prediction')} ${seek}
        order by id desc
        limit ${most}
      )
      union all
      (
        select 'comment', id, question_id, agent_id, content, created_at, hidden_at
        from comments
        where hidden_at is not null ${part('comment')} ${seek}
        order by id desc
        limit ${most}
      )
    ) h
    join agents g on g.id = h.agent_id
    order by h.id desc
    limit ${page.limit + 1}
    offset ${page.offset}`;
};

export const countHidden = async (db: Db, kind: ContentKind | undefined): Promise<number> => {
  const [row] = await db<{ predictions: number; comments: number }[]>`
    select
      (select count(*)::int from predictions where hidden_at is not null) as predictions,
      (select count(*)::int from comments where hidden_at is not null) as comments`;
  const { predictions = 0, comments = 0 } = row ?? {};
  if (kind === undefined) return predictions + comments;
  return kind === 'prediction' ? predictions : comments;
};
