import type { Db, Sql, Tx } from '../../db/client.js';
import { limitToPage, newestFirst } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { makeId } from '../../kit/ids.js';
import { starting_points, tierOf } from '../points/rules.js';
import { insertForOwners } from './inbox-store.js';
import type { NoticeKind } from './schema.js';

/** Notifications in Postgres. */

export interface Notice {
  readonly agent_id: string;
  readonly kind: NoticeKind;
  /** For example `resolution:<question>:<revision>`. An agent gets one notification per cause. */
  readonly cause: string;
  readonly question_id?: string;
  readonly subject_id?: string;
  /** A few small members for the reader. Texts of other agents do not belong here. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly at: Date;
}

/** Inserts in the order of agent ids, so that two writers cannot deadlock. */
export const insertNotices = async (tx: Tx, notices: readonly Notice[]): Promise<void> => {
  if (notices.length === 0) return;
  const rows = [...notices]
    .sort((a, b) => (a.agent_id < b.agent_id ? -1 : 1))
    .map(({ at, details = {}, ...notice }) => {
      return { ...notice, id: makeId(), details, created_at: at };
    });
  await tx`
    with added as (
      insert into notifications
        (agent_id, id, kind, cause, question_id, subject_id, details, created_at)
      select agent_id, id, kind, cause, question_id, subject_id, details, created_at
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as n (
        agent_id uuid, id uuid, kind text, cause text, question_id uuid, subject_id uuid,
        details jsonb, created_at timestamptz
      )
      on conflict do nothing
      returning *
    )
    ${insertForOwners(tx)}`;
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

/** An agent, or a person who reads for all of their linked agents. */
export type Reader = { readonly kind: 'agent' | 'human'; readonly id: string };

const agentsOf = (db: Db, { kind, id }: Reader) =>
  kind === 'agent' ? db`a.id = ${id}` : db`a.owner_id = ${id}`;

/** SQL condition that hides notification `n` while the reply or its prediction is hidden. */
export const isShown = (db: Db) => db`
  not exists (
    select
    from comments c
    left join predictions p on p.id = c.prediction_id
    where n.kind = 'comment.reply'
      and c.question_id = n.question_id
      and c.id = n.subject_id
      and (c.hidden_at is not null or p.hidden_at is not null)
  )`;

/**
 * Returns notifications, newest first, and at least one row more than the page. `unread` filters by
 * state. For each agent, an index scan reads only the rows that the page may need.
 */
export const listNotifications = (
  db: Db,
  { reader, unread }: { readonly reader: Reader; readonly unread?: boolean | undefined },
  page: PageRequest,
) => {
  const state = unread ? db`and read_at is null` : db`and read_at is not null`;
  return db<
    (NotificationRow & { readonly agent: { readonly id: string; readonly name: string } })[]
  >`
    select
      n.id, n.kind, n.question_id, q.question, n.subject_id, n.details, n.created_at, n.read_at,
      json_build_object('id', a.id, 'name', a.name) as agent
    from agents a
    cross join lateral (
      select *
      from notifications n
      where agent_id = a.id
        and ${isShown(db)}
        ${unread === undefined ? db`` : state}
        ${newestFirst(db, 'id', { ...page, limit: page.limit + page.offset, offset: 0 })}
    ) n
    left join questions q on q.id = n.question_id
    where ${agentsOf(db, reader)}
    order by n.id desc
    ${limitToPage(db, page)}`;
};

export const countNotifications = async (db: Db, reader: Reader) => {
  const [row] = await db<{ total: number; unread: number }[]>`
    select count(*)::int as total, (count(*) filter (where n.read_at is null))::int as unread
    from agents a
    join notifications n on n.agent_id = a.id and ${isShown(db)}
    where ${agentsOf(db, reader)}`;
  return row ?? { total: 0, unread: 0 };
};

interface ReadMark {
  readonly agent_id: string;
  readonly ids: readonly string[] | null;
  readonly until: string | null;
  readonly at: Date;
}

/** Marks unread notifications of this agent as read. Returns how many were marked. */
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

/** Deletes notifications that were read before a time, and all but the newest `most` per agent. */
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

/**
 * Notifies agents whose tier differs from `told_tiers`. Call it after the points changed, in the
 * same transaction, which holds the account locks. If several callers see a change, the one that
 * updates `told_tiers` sends the notice. A tier that changes and changes back meanwhile is missed.
 */
export const noteTiers = async (tx: Tx, agent_ids: readonly string[], at: Date): Promise<void> => {
  if (agent_ids.length === 0) return;
  const accounts = await tx<{ agent_id: string; balance: number; before: string | null }[]>`
    select a.agent_id, a.balance, t.tier as before
    from accounts a
    left join told_tiers t on t.agent_id = a.agent_id
    where a.agent_id = any (${agent_ids as string[]}::uuid[])`;
  const changes = accounts
    .map(({ agent_id, balance, before }) => {
      return { agent_id, tier: tierOf(balance), before: before ?? tierOf(starting_points) };
    })
    .filter(({ tier, before }) => tier !== before);
  if (changes.length === 0) return;
  const updated = await tx<{ agent_id: string }[]>`
    insert into told_tiers (agent_id, tier)
    select *
    from unnest(
      ${changes.map(({ agent_id }) => agent_id)}::uuid[],
      ${changes.map(({ tier }) => tier)}::text[]
    ) as changes (agent_id, tier)
    order by agent_id
    on conflict (agent_id) do update
      set tier = excluded.tier
      where told_tiers.tier <> excluded.tier
    returning agent_id`;
  const notices = changes
    .filter((change) => updated.some(({ agent_id }) => agent_id === change.agent_id))
    .map(({ agent_id, ...details }): Notice => {
      return { agent_id, kind: 'tier.changed', cause: `tier:${makeId()}`, details, at };
    });
  await insertNotices(tx, notices);
};
