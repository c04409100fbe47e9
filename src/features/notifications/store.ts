import { makeId } from '../../kit/ids.js';
import type { PageAsk } from '../../kit/page.js';
import type { Db, Sql, Tx } from '../../kit/pg/client.js';
import type { NoticeKind } from './schema.js';

/** Notifications in Postgres. */

export interface Notice {
  readonly agent_id: string;
  readonly kind: NoticeKind;
  /**
   * What it follows from, such as `resolution:<question>:<revision>`: an agent is told once of each
   * cause, however often this is written.
   */
  readonly cause: string;
  readonly question_id?: string;
  readonly subject_id?: string;
  /** A few small members for the reader; texts of other agents do not belong here. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly at: Date;
}

/** In the order of agent ids, so that two writers never wait for each other in a circle. */
export const insertNotices = async (tx: Tx, notices: readonly Notice[]): Promise<void> => {
  if (notices.length === 0) return;
  const sorted = [...notices].sort((a, b) => (a.agent_id < b.agent_id ? -1 : 1));
  await tx`
    insert into notifications
      (agent_id, id, kind, cause, question_id, subject_id, details, created_at)
    select agent_id, id, kind, cause, question_id, subject_id, details::jsonb, created_at
    from unnest(
      ${sorted.map((one) => one.agent_id)}::uuid[],
      ${sorted.map(() => makeId())}::uuid[],
      ${sorted.map((one) => one.kind)}::text[],
      ${sorted.map((one) => one.cause)}::text[],
      ${sorted.map((one) => one.question_id ?? null)}::uuid[],
      ${sorted.map((one) => one.subject_id ?? null)}::uuid[],
      ${sorted.map((one) => JSON.stringify(one.details ?? {}))}::text[],
      ${sorted.map((one) => one.at.toISOString())}::timestamptz[]
    ) as n (agent_id, id, kind, cause, question_id, subject_id, details, created_at)
    on conflict do nothing`;
};

export interface NotificationRow {
  readonly id: string;
  readonly kind: NoticeKind;
  readonly question_id: string | null;
  readonly question: string | null;
  readonly subject_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly created_at: Date;
  readonly read_at: Date | null;
}

export interface NotificationAsk {
  readonly agent_id: string;
  /** Undefined: all of them. */
  readonly unread: boolean | undefined;
}

const conditions = (db: Db, { agent_id, unread }: NotificationAsk) => db`
  n.agent_id = ${agent_id}
  ${unread === undefined ? db`` : unread ? db`and n.read_at is null` : db`and n.read_at is not null`}`;

/** Newest first; one row more than the page. */
export const listNotifications = (db: Db, ask: NotificationAsk, page: PageAsk) =>
  db<NotificationRow[]>`
    select
      n.id, n.kind, n.question_id, q.question, n.subject_id, n.details, n.created_at, n.read_at
    from notifications n
    left join questions q on q.id = n.question_id
    where ${conditions(db, ask)}
      ${page.after === null ? db`` : db`and n.id < ${page.after[0] as string}::uuid`}
    order by n.id desc
    limit ${page.limit + 1}
    offset ${page.offset}`;

export const countNotifications = async (db: Db, agent_id: string) => {
  const [row] = await db<{ total: number; unread: number }[]>`
    select count(*)::int as total, (count(*) filter (where read_at is null))::int as unread
    from notifications
    where agent_id = ${agent_id}`;
  return row ?? { total: 0, unread: 0 };
};

export interface ReadAsk {
  readonly agent_id: string;
  readonly ids: readonly string[] | null;
  readonly until: string | null;
  readonly at: Date;
}

/** How many became read; ids of others and those already read change nothing. */
export const markRead = async (tx: Tx, { agent_id, ids, until, at }: ReadAsk): Promise<number> => {
  const rows = await tx`
    update notifications
    set read_at = ${at}
    where agent_id = ${agent_id}
      and read_at is null
      and (id = any (${ids as string[] | null}::uuid[]) or id <= ${until}::uuid)
    returning id`;
  return rows.length;
};

/** Agents that have notifications, in pages by id; a loose scan over the primary key. */
export const listNotified = async (db: Db, after: string | null, most: number) => {
  const rows = await db<{ agent_id: string }[]>`
    with recursive known (agent_id, n) as (
      (
        select agent_id, 1
        from notifications
        where ${after}::uuid is null or agent_id > ${after}::uuid
        order by agent_id
        limit 1
      )
      union all
      select
        (
          select m.agent_id
          from notifications m
          where m.agent_id > known.agent_id
          order by m.agent_id
          limit 1
        ),
        known.n + 1
      from known
      where known.agent_id is not null and known.n < ${most}
    )
    select agent_id from known where agent_id is not null`;
  return rows.map(({ agent_id }) => agent_id);
};

/** Deletes what is beyond the newest `most` of each agent; how many went. */
export const dropBeyond = async (sql: Sql, agent_ids: readonly string[], most: number) => {
  if (agent_ids.length === 0) return 0;
  const rows = await sql`
    delete from notifications n
    using (
      select
        a.agent_id,
        (
          select m.id
          from notifications m
          where m.agent_id = a.agent_id
          order by m.id desc
          offset ${most}
          limit 1
        ) as last_id
      from unnest(${agent_ids as string[]}::uuid[]) as a (agent_id)
    ) bound
    where n.agent_id = bound.agent_id and n.id <= bound.last_id
    returning n.id`;
  return rows.length;
};

/** Deletes up to `most` that were read before `before`; how many went. */
export const dropRead = async (sql: Sql, before: Date, most: number): Promise<number> => {
  const rows = await sql`
    delete from notifications
    where (agent_id, id) in (
      select agent_id, id
      from notifications
      where read_at < ${before}
      order by read_at
      limit ${most}
      for update skip locked
    )
    returning id`;
  return rows.length;
};
