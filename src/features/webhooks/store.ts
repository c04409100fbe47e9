import type { Db, Tx } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import type { FilterMembers } from '../events/filter.js';
import { skipQueued } from './maintenance-store.js';
import { type DeliveryOrder, type SignatureScheme, webhook_limit } from './schema.js';
import { oldSecrets, orderKey } from './sending-store.js';
import type { Attempt } from './signing.js';

/**
 * Webhooks in Postgres. Statements for callers name the owner, so callers see only their own
 * webhooks.
 */

export type Owner = { readonly kind: 'agent' | 'human'; readonly id: string };

/** A webhook as responses show it. */
type WebhookRow = { readonly id: string; readonly active: boolean };

interface NewWebhook {
  readonly id: string;
  readonly owner: Owner;
  readonly url: string;
  readonly events: readonly string[];
  readonly secret_sealed: Buffer;
  readonly signature?: SignatureScheme | undefined;
  readonly order?: DeliveryOrder | undefined;
  /** The event names of the filter are ignored, because a webhook has its own `events`. */
  readonly filter?: FilterMembers | null | undefined;
}

const columns = (db: Db) => db`
  id, url, events,
  nullif(
    json_strip_nulls(
      json_build_object(
        'question_ids', filter_questions, 'categories', filter_categories,
        'model_family', filter_families, 'min_confidence', filter_confidence
      )
    )::text,
    '{}'
  )::json as filter,
  active, signature, "order", disabled_reason, failing_since,
  case when paused_until > now() then paused_until end as paused_until,
  (
    select max(o.until)
    from webhook_old_secrets o
    where o.webhook_id = webhooks.id and o.until > now()
  ) as old_secret_expires_at,
  created_at, updated_at`;

const ownedBy = (db: Db, { kind, id }: Owner) => db`owner_kind = ${kind} and owner_id = ${id}`;

const listOf = (list: readonly string[] | null | undefined) => (list ?? null) as string[] | null;

const owner_lock = 7_366_144;

/**
 * Stores a webhook in a free slot of its owner; null if all slots are taken. In a transaction,
 * creations for the same owner run one after another. The unique slot enforces the limit anyway.
 */
export const insertWebhook = async (db: Db, hook: NewWebhook): Promise<WebhookRow | null> => {
  const { id, owner, url, events, secret_sealed, filter, signature = 'standard' } = hook;
  const { order = 'none' } = hook;
  await db`select pg_advisory_xact_lock(${owner_lock}, hashtext(${owner.id}))`;
  // Lock this row before reading the end of the log: see `planAllIfUnused`.
  await db`select from delivery_plan for share`;
  const [row] = await db<WebhookRow[]>`
    insert into webhooks
      (id, owner_kind, owner_id, slot, url, events, secret_sealed, filter_questions,
        filter_categories, filter_families, filter_confidence, signature,
        "order", after_offset)
    select
      ${id}, ${owner.kind}, ${owner.id}, s.slot, ${url}, ${events as string[]}::text[],
      ${secret_sealed}, ${listOf(filter?.question_ids)}::uuid[],
      ${listOf(filter?.categories)}::text[], ${listOf(filter?.model_family)}::text[],
      ${filter?.min_confidence ?? null}::numeric, ${signature}, ${order},
      (select "offset" from log_head)
    from generate_series(1, ${webhook_limit}::int) as s (slot)
    where not exists (select from webhooks w where ${ownedBy(db, owner)} and w.slot = s.slot)
    order by s.slot
    limit 1
    on conflict (owner_kind, owner_id, slot) do nothing
    returning ${columns(db)}`;
  return row ?? null;
};

export const listWebhooks = (db: Db, owner: Owner) => db<WebhookRow[]>`
  select ${columns(db)} from webhooks where ${ownedBy(db, owner)} order by created_at, id`;

export const findWebhook = (db: Db, owner: Owner, id: string) =>
  firstRow(db<WebhookRow[]>`
    select ${columns(db)} from webhooks where id = ${id} and ${ownedBy(db, owner)}`);

interface OwnedRow extends WebhookRow {
  readonly owner_kind: Owner['kind'];
  readonly owner_id: string;
  /** Name of the agent or e-mail address of the person; null if the owner is gone. */
  readonly owner: string | null;
  readonly url: string;
  readonly disabled_reason: string | null;
  readonly failing_since: Date | null;
  /** Number of deliveries still to be sent. */
  readonly waiting: number;
}

/** Lists the webhooks of all owners, or the one with this id. For operators. */
export const listEveryWebhook = (db: Db, id: string | null, most: number) =>
  db<OwnedRow[]>`
    select ${columns(db)}, owner_kind, owner_id,
      coalesce(
        (select name from agents a where a.id = webhooks.owner_id),
        (select email from humans h where h.id = webhooks.owner_id)
      ) as owner,
      (select count(*)::int from deliveries d
        where d.webhook_id = webhooks.id and d.state in ('pending', 'waiting')) as waiting
    from webhooks
    where ${id}::uuid is null or id = ${id}
    order by created_at, id
    limit ${most}`;

export type Target = Pick<
  Attempt,
  'webhook_id' | 'url' | 'signature' | 'secret_sealed' | 'old_secrets_sealed'
>;

/** Finds the parts of a webhook that a call to it needs. */
export const findTarget = (db: Db, owner: Owner, id: string) =>
  firstRow(db<Target[]>`
    select id as webhook_id, url, signature, secret_sealed, ${oldSecrets(db)} as old_secrets_sealed
    from webhooks w
    where id = ${id} and ${ownedBy(db, owner)}`);

/** Members that are missing or undefined stay unchanged. */
export interface WebhookChange {
  readonly url?: string | undefined;
  readonly events?: readonly string[] | undefined;
  readonly active?: boolean | undefined;
  readonly signature?: SignatureScheme | undefined;
  readonly order?: DeliveryOrder | undefined;
  /** Null removes the filter. */
  readonly filter?: FilterMembers | null | undefined;
}

const orderQueued = (tx: Tx, id: string) => tx`
  update deliveries d
  set question_id = ${orderKey(tx)}
  from webhooks w, events e
  where w.id = ${id}
    and d.webhook_id = w.id
    and d.state in ('pending', 'waiting', 'sending')
    and e.recorded_on = d.recorded_on
    and e."offset" = d.event_offset`;

/** Switching off skips the queued deliveries. Switching on, or a new URL, resets the failures. */
export const updateWebhook = async (
  tx: Tx,
  owner: Owner,
  { id, change }: { readonly id: string; readonly change: WebhookChange },
): Promise<WebhookRow | undefined> => {
  const { url = null, active = null, signature = null, order = null, filter } = change;
  const is_fresh = url !== null || active === true;
  const fresh = tx`
    failing_since = null, failures = 0, failed_events = '{}', gone_events = '{}', trips = 0,
    paused_until = null,`;
  const filtered = tx`
    filter_questions = ${listOf(filter?.question_ids)}::uuid[],
    filter_categories = ${listOf(filter?.categories)}::text[],
    filter_families = ${listOf(filter?.model_family)}::text[],
    filter_confidence = ${filter?.min_confidence ?? null}::numeric,`;
  // The locks stop planning and replays, so that every queued delivery gets the new order.
  if (order !== null) {
    await tx`select from delivery_plan for no key update`;
    await tx`select from webhook_replays where webhook_id = ${id} for update`;
  }
  const [row] = await tx<WebhookRow[]>`
    update webhooks
    set
      ${is_fresh ? fresh : tx``}
      ${filter === undefined ? tx`` : filtered}
      url = coalesce(${url}, url),
      events = coalesce(${listOf(change.events)}::text[], events),
      active = coalesce(${active}, active),
      signature = coalesce(${signature}, signature),
      "order" = coalesce(${order}, "order"),
      disabled_reason = case when ${active}::boolean is null then disabled_reason end,
      updated_at = now()
    where id = ${id} and ${ownedBy(tx, owner)}
    returning ${columns(tx)}`;
  if (row !== undefined && order !== null) await orderQueued(tx, id);
  if (row !== undefined && active === false) await skipQueued(tx, id);
  return row;
};

/**
 * Maximum number of replaced secrets that still sign. Their signatures have to fit into a header.
 */
const max_secrets = 20;

/**
 * The new secret signs from now on, and the previous one until the overlap is over. Older secrets
 * keep the end that was promised for each. Returns `full` if too many secrets still sign.
 */
export const rotateSecret = async (
  tx: Tx,
  owner: Owner,
  rotation: { readonly id: string; readonly secret_sealed: Buffer; readonly overlap_hours: number },
): Promise<WebhookRow | 'full' | undefined> => {
  const { id, secret_sealed, overlap_hours } = rotation;
  const [hook] = await tx`
    select from webhooks where id = ${id} and ${ownedBy(tx, owner)} for update`;
  if (hook === undefined) return undefined;
  await tx`delete from webhook_old_secrets where webhook_id = ${id} and until <= now()`;
  if (overlap_hours > 0) {
    const { count } = await tx`
      insert into webhook_old_secrets (webhook_id, secret_sealed, until, replaced_at)
      select id, secret_sealed, now() + ${overlap_hours}::int * interval '1 hour', clock_timestamp()
      from webhooks
      where id = ${id}
        and (select count(*) from webhook_old_secrets where webhook_id = ${id}) < ${max_secrets}`;
    if (count === 0) return 'full';
  }
  const [row] = await tx<WebhookRow[]>`
    update webhooks
    set secret_sealed = ${secret_sealed}, updated_at = now()
    where id = ${id}
    returning ${columns(tx)}`;
  return row;
};

/**
 * Deletes one webhook, or all webhooks of an owner who is being deleted; returns how many. Their
 * deliveries are removed soon after.
 */
export const deleteWebhooks = async (tx: Tx, owner: Owner, id?: string): Promise<number> => {
  const one = id === undefined ? tx`` : tx`and id = ${id}`;
  const rows = await tx<{ id: string }[]>`
    delete from webhooks where ${ownedBy(tx, owner)} ${one} returning id`;
  const ids = rows.map((row) => row.id);
  await tx`delete from webhook_replays where webhook_id = any (${ids}::uuid[])`;
  await tx`
    insert into webhook_leavings (webhook_id)
    select w.id from unnest(${ids}::uuid[]) as w (id)`;
  return ids.length;
};
