import type { Db, Sql } from '../../kit/pg/client.js';
import type { FilterMembers } from '../events/index.js';
import { removeDeliveries, skipQueued } from './delivery/keep-store.js';
import { webhook_limit } from './schema.js';

/** Webhooks in Postgres. Every statement names the owner: what is not yours does not exist. */

export interface Owner {
  readonly kind: 'agent' | 'human';
  readonly id: string;
}

export interface WebhookRow {
  readonly id: string;
  readonly url: string;
  readonly events: string[];
  readonly filter_questions: string[] | null;
  readonly filter_categories: string[] | null;
  readonly filter_families: string[] | null;
  readonly filter_confidence: number | null;
  readonly active: boolean;
  readonly disabled_reason: string | null;
  readonly failing_since: Date | null;
  readonly paused_until: Date | null;
  readonly old_secret_until: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface SealedRow extends WebhookRow {
  readonly secret_sealed: Uint8Array;
  readonly old_secret_sealed: Uint8Array | null;
}

/** The names of its events are the webhook's own. */
export type WebhookFilter = Omit<FilterMembers, 'events'>;

export interface NewWebhook {
  readonly id: string;
  readonly owner: Owner;
  readonly url: string;
  readonly events: readonly string[];
  readonly secret_sealed: Buffer;
  readonly filter?: WebhookFilter | null | undefined;
}

const columns = (db: Db) => db`
  id, url, events, filter_questions, filter_categories, filter_families, filter_confidence, active,
  disabled_reason, failing_since, created_at, updated_at,
  case when paused_until > now() then paused_until end as paused_until,
  case when old_secret_until > now() then old_secret_until end as old_secret_until`;

const listOf = (list: readonly string[] | null | undefined) => (list ?? null) as string[] | null;

const tryInsert = async (db: Db, hook: NewWebhook): Promise<WebhookRow | undefined> => {
  const { id, owner, url, events, secret_sealed, filter } = hook;
  const [row] = await db<WebhookRow[]>`
    insert into webhooks
      (id, owner_kind, owner_id, slot, url, events, secret_sealed, filter_questions,
        filter_categories, filter_families, filter_confidence, after_offset)
    select
      ${id}, ${owner.kind}, ${owner.id}, free.slot, ${url}, ${events as string[]}::text[],
      ${secret_sealed}, ${listOf(filter?.question_ids)}::uuid[],
      ${listOf(filter?.categories)}::text[], ${listOf(filter?.model_families)}::text[],
      ${filter?.min_confidence ?? null}::smallint, (select "offset" from log_head)
    from (
      select s.slot
      from generate_series(1, ${webhook_limit}::int) as s (slot)
      where not exists (
        select from webhooks w
        where w.owner_kind = ${owner.kind} and w.owner_id = ${owner.id} and w.slot = s.slot
      )
      order by random()
      limit 1
    ) free
    on conflict (owner_kind, owner_id, slot) do nothing
    returning ${columns(db)}`;
  return row;
};

const countOf = async (db: Db, owner: Owner): Promise<number> => {
  const [row] = await db<{ count: number }[]>`
    select count(*)::int as count
    from webhooks
    where owner_kind = ${owner.kind} and owner_id = ${owner.id}`;
  return row?.count ?? 0;
};

/** Each lost slot went to somebody else, so that more than a few in a row means a full owner. */
const most_tries = 100;

/**
 * Stores a webhook in a free slot of its owner; null when all are taken. The unique slot decides
 * between creations at the same time: the one that loses a slot looks for another.
 */
export const insertWebhook = async (db: Db, hook: NewWebhook): Promise<WebhookRow | null> => {
  for (let i = 0; i < most_tries; i += 1) {
    const row = await tryInsert(db, hook);
    if (row !== undefined) return row;
    if ((await countOf(db, hook.owner)) >= webhook_limit) return null;
  }
  return null;
};

export const listWebhooks = async (db: Db, owner: Owner): Promise<WebhookRow[]> => db<WebhookRow[]>`
  select ${columns(db)}
  from webhooks
  where owner_kind = ${owner.kind} and owner_id = ${owner.id}
  order by created_at, id`;

export const findWebhook = async (
  db: Db,
  owner: Owner,
  id: string,
): Promise<SealedRow | undefined> => {
  const [row] = await db<SealedRow[]>`
    select ${columns(db)}, secret_sealed,
      case when old_secret_until > now() then old_secret_sealed end as old_secret_sealed
    from webhooks
    where id = ${id} and owner_kind = ${owner.kind} and owner_id = ${owner.id}`;
  return row;
};

export interface WebhookChange {
  readonly url: string | null;
  readonly events: readonly string[] | null;
  readonly active: boolean | null;
  /** Undefined: stays. Null: none. */
  readonly filter: WebhookFilter | null | undefined;
}

/** Rows that a change or a deletion moves by itself; the keeper does the rest. */
const rows_at_once = 1_000;

/**
 * What is null stays. Switching off also skips what was waiting to be delivered. Another address,
 * or switching on, forgets what failed before.
 */
export const updateWebhook = async (
  sql: Sql,
  owner: Owner,
  { id, change }: { readonly id: string; readonly change: WebhookChange },
): Promise<WebhookRow | undefined> => {
  const { url, active, filter } = change;
  const is_fresh = url !== null || active === true;
  const fresh = sql`
    failing_since = null, failures = 0, failed_events = '{}', gone_events = '{}', trips = 0,
    paused_until = null,`;
  return sql.begin(async (tx) => {
    const [row] = await tx<WebhookRow[]>`
      update webhooks
      set
        ${is_fresh ? fresh : sql``}
        ${
          filter === undefined
            ? sql``
            : sql`
                filter_questions = ${listOf(filter?.question_ids)}::uuid[],
                filter_categories = ${listOf(filter?.categories)}::text[],
                filter_families = ${listOf(filter?.model_families)}::text[],
                filter_confidence = ${filter?.min_confidence ?? null}::smallint,`
        }
        ${active === false ? sql`skip_before = now(),` : sql``}
        url = coalesce(${url}, url),
        events = coalesce(${listOf(change.events)}::text[], events),
        active = coalesce(${active}, active),
        disabled_reason = case when ${active}::boolean is null then disabled_reason end,
        updated_at = now()
      where id = ${id} and owner_kind = ${owner.kind} and owner_id = ${owner.id}
      returning ${columns(tx)}`;
    if (row !== undefined && active === false) await skipQueued(tx, id, rows_at_once);
    return row;
  });
};

/** The new secret signs from now on, and the one before it too until the overlap is over. */
export const rotateSecret = async (
  db: Db,
  owner: Owner,
  {
    id,
    secret_sealed,
    overlap_hours,
  }: { readonly id: string; readonly secret_sealed: Buffer; readonly overlap_hours: number },
): Promise<WebhookRow | undefined> => {
  const [row] = await db<WebhookRow[]>`
    update webhooks
    set
      old_secret_sealed = case when ${overlap_hours}::int > 0 then secret_sealed end,
      old_secret_until = case when ${overlap_hours}::int > 0
        then now() + ${overlap_hours}::int * interval '1 hour'
      end,
      secret_sealed = ${secret_sealed},
      updated_at = now()
    where id = ${id} and owner_kind = ${owner.kind} and owner_id = ${owner.id}
    returning ${columns(db)}`;
  return row;
};

/**
 * Deletes a webhook; false when there was none. What is kept about its deliveries goes with it, of
 * a long history a part now and the rest by the keeper, who also finds what a hand-off under way
 * still plans for it.
 */
export const deleteWebhook = async (sql: Sql, owner: Owner, id: string): Promise<boolean> =>
  sql.begin(async (tx) => {
    const gone = await tx`
      delete from webhooks
      where id = ${id} and owner_kind = ${owner.kind} and owner_id = ${owner.id}
      returning id`;
    if (gone.length === 0) return false;
    await tx`delete from webhook_replays where webhook_id = ${id}`;
    await tx`insert into webhook_leavings (webhook_id) values (${id})`;
    await removeDeliveries(tx, id, rows_at_once);
    return true;
  });
