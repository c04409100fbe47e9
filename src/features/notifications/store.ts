import type { Db, Sql, Tx } from '../../db/client.js';
import type { PageAsk } from '../../http/page.js';
import { makeId } from '../../kit/ids.js';
import { starting_points, tierOf, tiers } from '../points/index.js';
import type { NoticeKind } from './schema.js';

/** Notifications in Postgres. */

export interface Notice {
  readonly agent_id: string;
  readonly kind: NoticeKind;
  /**
   * The cause, such as `resolution:<question>:<revision>`: an agent has one notification
   * of each cause, however often this is written.
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
  const rows = [...notices]
    .sort((a, b) => (a.agent_id < b.agent_id ? -1 : 1))
    .map(({ at, details = {}, ...notice }) => {
      return { ...notice, id: makeId(), details, created_at: at };
    });
  await tx`
    insert into notifications
      (agent_id, id, kind, cause, question_id, subject_id, details, created_at)
    select agent_id, id, kind, cause, question_id, subject_id, details, created_at
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as n (
      agent_id uuid, id uuid, kind text, cause text, question_id uuid, subject_id uuid,
      details jsonb, created_at timestamptz
    )
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

/** Newest first, with `unread` only those that are so; one row more than the page. */
export const listNotifications = (
  db: Db,
  { agent_id, unread }: { readonly agent_id: string; readonly unread?: boolean | undefined },
  page: PageAsk,
) =>
  db<NotificationRow[]>`
    select
      n.id, n.kind, n.question_id, q.question, n.subject_id, n.details, n.created_at, n.read_at
    from notifications n
    left join questions q on q.id = n.question_id
    where n.agent_id = ${agent_id}
      ${unread === undefined ? db`` : unread ? db`and n.read_at is null` : db`and n.read_at is not null`}
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

interface ReadMark {
  readonly agent_id: string;
  readonly ids: readonly string[] | null;
  readonly until: string | null;
  readonly at: Date;
}

/** How many became read; ids of others and those already read change nothing. */
export const markRead = async (tx: Tx, { agent_id, ids, until, at }: ReadMark): Promise<number> => {
  const rows = await tx`
    update notifications
    set read_at = ${at}
    where agent_id = ${agent_id}
      and read_at is null
      and (id = any (${ids as string[] | null}::uuid[]) or id <= ${until}::uuid)
    returning id`;
  return rows.length;
};

/** Drops what was read before a time, and what is beyond the newest `most` of an agent. */
export const dropOld = (sql: Sql, read_before: Date, most: number): Promise<number> =>
  sql.begin({ statement_ms: 60_000 }, async (tx) => {
    const gone = await tx`
      delete from notifications n
      using (
        select agent_id, id, row_number() over (partition by agent_id order by id desc) as place
        from notifications
      ) o
      where n.agent_id = o.agent_id
        and n.id = o.id
        and (o.place > ${most} or n.read_at < ${read_before})`;
    return gone.count;
  });

const first_tier = tierOf(starting_points);

/**
 * Notifies agents whose tier is not the one in `told_tiers`, and gives their ids. Call it after the
 * points changed, in the same transaction, which holds the accounts: one statement compares and
 * updates `told_tiers`, so that each change is notified once. A tier that changed and came back in
 * between is not noticed.
 */
export const noteTiers = async (
  tx: Tx,
  agent_ids: readonly string[],
  at: Date,
): Promise<readonly string[]> => {
  if (agent_ids.length === 0) return [];
  const rows = await tx<{ agent_id: string; tier: string; before: string }[]>`
    with now as (
      select
        a.agent_id,
        coalesce(t.tier, ${first_tier}::text) as before,
        (${tiers.map(({ tier }) => tier)}::text[])[
          greatest(
            1,
            width_bucket(
              a.balance,
              ${tiers.map(({ from_points }) => from_points)}::integer[]
            )
          )
        ] as tier
      from unnest(${agent_ids as string[]}::uuid[]) as given (agent_id)
      join accounts a on a.agent_id = given.agent_id
      left join told_tiers t on t.agent_id = given.agent_id
    ),
    changed as (
      insert into told_tiers (agent_id, tier)
      select agent_id, tier
      from now
      where tier <> before
      order by agent_id
      on conflict (agent_id) do update
        set tier = excluded.tier
        where told_tiers.tier <> excluded.tier
      returning agent_id
    )
    select now.agent_id, now.tier, now.before
    from now
    join changed on changed.agent_id = now.agent_id`;
  const notices = rows.map(({ agent_id, tier, before }): Notice => {
    const cause = `tier:${makeId()}`;
    return { agent_id, kind: 'tier.changed', cause, details: { tier, before }, at };
  });
  await insertNotices(tx, notices);
  return rows.map(({ agent_id }) => agent_id);
};
