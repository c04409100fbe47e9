import type { Db, Fragment, Sql, Tx } from '../../db/client.js';
import { newestFirst, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { type Alert, type InboxKind, max_unread } from './schema.js';

/**
 * Inboxes in Postgres: what people and agents are told. A person's item can be about one of their
 * agents. The person's read state is then separate from the agent's.
 */

/** SQL for whether a person wants an e-mail about this at once. Agents have no settings. */
export const wantsMail = (db: Db, reader: Fragment, alert: Fragment) => db`
  exists (
    select
    from mail_settings s
    where s.human_id = ${reader} and ${alert} = any (s.alerts) and s.stopped_at is null
  )`;

export const alertOf = (db: Db, alert: Alert): Fragment => db`${alert}::text`;

/**
 * The end of a statement with new notifications in `added`: tells the owners of the agents. Several
 * agents of one owner share an item if it has the same cause, which is the case for results.
 */
export const insertForOwners = (db: Db) => db`
  insert into inbox_items as i (
    reader_id, id, kind, cause, agent_id, question_id, subject_id, details, created_at, mail_due
  )
  select
    a.owner_id,
    min(n.id::text)::uuid,
    n.kind,
    n.cause,
    case when count(*) = 1 then min(n.agent_id::text)::uuid end,
    n.question_id,
    case when count(*) = 1 then min(n.subject_id::text)::uuid end,
    case
      when count(*) = 1 then (array_agg(n.details))[1]
      else jsonb_build_object('agents', count(*), 'net', sum((n.details ->> 'net')::integer))
    end,
    min(n.created_at),
    ${wantsMail(
      db,
      db`a.owner_id`,
      db`case
        when n.kind = 'comment.reply' then 'replies'
        when n.kind in ('prediction.resolved', 'prediction.voided') then 'resolved'
      end`,
    )}
  from added n
  join agents a on a.id = n.agent_id
  where a.owner_id is not null and not is_imported(a.owner_id)
  group by a.owner_id, n.kind, n.cause, n.question_id
  order by a.owner_id
  on conflict (reader_id, cause) do update
    set
      id = excluded.id,
      read_at = null,
      mail_due = i.mail_due or excluded.mail_due,
      agent_id = null,
      subject_id = null,
      details = jsonb_build_object(
        'agents',
        coalesce((i.details ->> 'agents')::integer, 1)
          + coalesce((excluded.details ->> 'agents')::integer, 1),
        'net',
        coalesce((i.details ->> 'net')::integer, 0)
          + coalesce((excluded.details ->> 'net')::integer, 0)
      )`;

export interface InboxRow {
  readonly id: string;
  readonly kind: InboxKind;
  readonly agent_id: string | null;
  readonly agent_name: string | null;
  readonly question_id: string | null;
  readonly question: string | null;
  readonly question_type: string | null;
  readonly options: readonly string[] | null;
  readonly range_min: number | null;
  readonly range_max: number | null;
  readonly unit: string | null;
  readonly subject_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
  readonly created_at: Date;
  readonly read_at: Date | null;
}

const columns = (db: Db) => db`
  i.id, i.kind, i.agent_id, a.name as agent_name, i.question_id, q.question, q.question_type,
  q.options, q.range_min, q.range_max, q.unit, i.subject_id, i.details, i.created_at, i.read_at`;

/** The items `i`, with the question and the agent that they are about. */
const named = (db: Db) => db`
  inbox_items i
  left join questions q on q.id = i.question_id
  left join agents a on a.id = i.agent_id`;

/** Hides an item while the reply that it is about, or the reply's forecast, is hidden. */
const isShown = (db: Db) => db`
  not exists (
    select
    from comments c
    left join predictions p on p.id = c.prediction_id
    where i.kind = 'comment.reply'
      and c.question_id = i.question_id
      and c.id = i.subject_id
      and (c.hidden_at is not null or p.hidden_at is not null)
  )`;

const stateOf = (db: Db, unread: boolean | undefined) => {
  if (unread === undefined) return db``;
  return unread ? db`and i.read_at is null` : db`and i.read_at is not null`;
};

/** Lists the items of a reader, newest first, and at least one more than the page. */
export const listInbox = (
  db: Db,
  reader_id: string,
  unread: boolean | undefined,
  page: PageRequest,
) => db<InboxRow[]>`
  select ${columns(db)}
  from ${named(db)}
  where i.reader_id = ${reader_id}
    and ${isShown(db)}
    ${stateOf(db, unread)}
    ${newestFirst(db, 'i.id', page)}`;

/** Lists items in the order of their ids, for exports. */
export const listOldestInbox = (
  db: Db,
  reader_id: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
) => db<InboxRow[]>`
  select ${columns(db)}
  from ${named(db)}
  where i.reader_id = ${reader_id}
    and (${after === null} or i.id > ${after}::uuid)
    and ${isShown(db)}
  order by i.id
  limit ${limit}`;

export const countInbox = (db: Db, reader_id: string, unread: boolean | undefined) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total
    from inbox_items i
    where i.reader_id = ${reader_id} and ${isShown(db)} ${stateOf(db, unread)}`);

/** Counts unread items, up to `max_unread`. */
export const countUnread = (db: Db, reader_id: string) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total
    from (
      select
      from inbox_items i
      where i.reader_id = ${reader_id} and i.read_at is null and ${isShown(db)}
      limit ${db.unsafe(String(max_unread))}
    ) unread`);

/** Marks unread items as read: these ids, or this item and all older ones. Returns how many. */
export const markInboxRead = async (
  tx: Tx,
  reader_id: string,
  {
    ids,
    until,
    at,
  }: { readonly ids: readonly string[] | null; readonly until: string | null; readonly at: Date },
): Promise<number> => {
  const rows = await tx`
    update inbox_items
    set read_at = ${at}
    where reader_id = ${reader_id}
      and read_at is null
      and (id = any (${ids as string[] | null}::uuid[]) or id <= ${until}::uuid)`;
  return rows.count;
};

/** Lists some items of several readers that are due as e-mails, oldest first, also hidden ones. */
export const listDue = (db: Db, reader_ids: readonly string[], most: number) => db<
  (InboxRow & { readonly reader_id: string; readonly is_shown: boolean })[]
>`
  select r.id as reader_id, due.*
  from unnest(${reader_ids as string[]}::uuid[]) as r (id)
  cross join lateral (
    select ${columns(db)}, ${isShown(db)} as is_shown
    from ${named(db)}
    where i.reader_id = r.id and i.mail_due
    order by i.id
    limit ${db.unsafe(String(most))}
  ) due`;

/** Lists the items of several readers, each from its own id, until one id; newest first. */
export const listBetween = (
  db: Db,
  readers: readonly { readonly id: string; readonly after: string }[],
  { until, most }: { readonly until: string; readonly most: number },
) => db<(InboxRow & { readonly reader_id: string })[]>`
  select r.id as reader_id, news.*
  from json_to_recordset(${JSON.stringify(readers)}::text::json) as r (id uuid, after uuid)
  cross join lateral (
    select ${columns(db)}
    from ${named(db)}
    where i.reader_id = r.id and i.id >= r.after and i.id < ${until}::uuid and ${isShown(db)}
    order by i.id desc
    limit ${db.unsafe(String(most))}
  ) news`;

/** Notes that these items need no e-mail any more. Items that came meanwhile stay due. */
export const settleDue = async (
  tx: Tx,
  items: readonly { readonly reader_id: string; readonly id: string }[],
): Promise<void> => {
  const pairs = items.map(({ reader_id, id }) => ({ reader_id, id }));
  await tx`
    update inbox_items i
    set mail_due = false
    from json_to_recordset(${JSON.stringify(pairs)}::text::json) as d (reader_id uuid, id uuid)
    where i.reader_id = d.reader_id and i.id = d.id`;
};

export const deleteInbox = async (tx: Tx, reader_id: string): Promise<void> => {
  await tx`delete from inbox_items where reader_id = ${reader_id}`;
};

/** Deletes items that were read before a time, and all but the newest `most` per reader. */
export const dropOldItems = (sql: Sql, read_before: Date, most: number): Promise<number> =>
  sql.begin({ statement_ms: 60_000 }, async (tx) => {
    const gone = await tx`
      delete from inbox_items i
      using (
        select reader_id, id, row_number() over (partition by reader_id order by id desc) as place
        from inbox_items
      ) o
      where i.reader_id = o.reader_id
        and i.id = o.id
        and (o.place > ${most} or i.read_at < ${read_before})`;
    return gone.count;
  });

export interface NewItem {
  readonly id: string;
  readonly kind: InboxKind;
  readonly cause: string;
  readonly agent_id?: string;
  readonly question_id?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly at: Date;
  /** The alert that a person can want for it. */
  readonly alert?: Alert;
}

/**
 * Tells the readers that the statement `readers` selects. It selects `reader_id` and `details`,
 * whose members are added to the item's. If a reader has an item with this cause, it is replaced
 * and is new again.
 */
export const tell = async (tx: Tx, item: NewItem, readers: Fragment): Promise<number> => {
  const { id, kind, cause, agent_id = null, question_id = null, details = {}, at, alert } = item;
  const mail = alert === undefined ? tx`false` : wantsMail(tx, tx`r.reader_id`, alertOf(tx, alert));
  const rows = await tx`
    insert into inbox_items (
      reader_id, id, kind, cause, agent_id, question_id, details, created_at, mail_due
    )
    select
      r.reader_id, ${id}, ${kind}, ${cause}, ${agent_id}, ${question_id},
      ${JSON.stringify(details)}::text::jsonb || r.details, ${at}, ${mail}
    from (${readers}) as r
    order by r.reader_id
    on conflict (reader_id, cause) do update
      set
        id = excluded.id,
        details = excluded.details,
        question_id = excluded.question_id,
        created_at = excluded.created_at,
        read_at = null`;
  return rows.count;
};
