import type { Db, Sql } from '../../db/client.js';
import { firstRow, newestFirst, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { makeId } from '../../kit/ids.js';
import { readOldest } from '../events/index.js';
import type { DeliveryState } from './schema.js';
import { orderKey } from './sending-store.js';

/** Reads deliveries for their owners, as responses show them, and sends them again. */

type DeliveryRow = {
  readonly id: string;
  readonly event_id: string;
  readonly status: DeliveryState;
};

type DeliveryFilter = { readonly webhook_id: string; readonly state: DeliveryState | null };

const columns = (db: Db) => db`
  d.id, d.event_id, case when d.state <> 'gap' then e.event end as event,
  d.event_offset as "offset", d.state as status, d.attempts, d.replays,
  case when d.state in ('pending', 'waiting') then d.next_at end as next_attempt_at,
  d.created_at, d.delivered_at,
  case when d.state = 'gap' then json_build_object(
    'from_offset', d.event_offset, 'until_offset', d.gap_until_offset, 'count', d.gap_count,
    'reason', d.gap_reason
  ) end as gap`;

const withEvent = (db: Db) => db`
  left join events e on e.recorded_on = d.recorded_on and e."offset" = d.event_offset`;

const isListed = (db: Db, { webhook_id, state }: DeliveryFilter) => db`
  d.webhook_id = ${webhook_id} and (${state}::text is null or d.state = ${state})`;

/**
 * Lists deliveries by descending event id, which is newest first, because ids grow with time.
 * Returns one row more than the page.
 */
export const listDeliveries = (db: Db, filter: DeliveryFilter, page: PageRequest) => db<
  DeliveryRow[]
>`
  select ${columns(db)}, a.last_attempt
  from deliveries d
  ${withEvent(db)}
  left join lateral (
    select json_build_object(
      'attempt', a.attempt,
      'at', to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      'status', a.status, 'latency_ms', a.latency_ms, 'error', a.error
    ) as last_attempt
    from attempts a
    where a.webhook_id = d.webhook_id and a.event_id = d.event_id
    order by a.at desc
    limit 1
  ) a on true
  where ${isListed(db, filter)}
    ${newestFirst(db, 'd.event_id', page)}`;

export const countDeliveries = (db: Db, filter: DeliveryFilter) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total
    from (
      select from deliveries d where ${isListed(db, filter)} limit 100000
    ) counted`);

/** Computes the event's id from the delivery's id, so that the primary key finds the row. */
const isDelivery = (db: Db, webhook_id: string, id: string) => db`
  d.webhook_id = ${webhook_id} and d.event_id = delivery_id(${webhook_id}, ${id})`;

export const findDelivery = (db: Db, webhook_id: string, id: string) =>
  firstRow(db<DeliveryRow[]>`
    select ${columns(db)} from deliveries d ${withEvent(db)} where ${isDelivery(db, webhook_id, id)}`);

/** Returns the newest 100 attempts, oldest first. */
export const listAttempts = async (db: Db, webhook_id: string, event_id: string) => {
  const rows = await db`
    select attempt, at, status, latency_ms, error, answer
    from attempts
    where webhook_id = ${webhook_id} and event_id = ${event_id}
    order by at desc
    limit 100`;
  return rows.reverse();
};

/**
 * Queues a delivery again, with its full number of attempts and without an expiry. Changes nothing
 * if the delivery is being sent or is a gap.
 */
export const redeliver = async (db: Db, webhook_id: string, id: string): Promise<void> => {
  await db`
    update deliveries d
    set
      state = 'pending',
      attempts = 0,
      claims = 0,
      next_at = now(),
      queued_at = now(),
      expires_at = null,
      delivered_at = null,
      replays = d.replays + 1,
      question_id = (
        select ${orderKey(db)}
        from webhooks w
        join events e on e.recorded_on = d.recorded_on and e."offset" = d.event_offset
        where w.id = d.webhook_id
      )
    where ${isDelivery(db, webhook_id, id)} and d.state not in ('sending', 'gap')`;
};

/** Returns the last offset before a time. Times grow with offsets, so a binary search finds it. */
export const offsetBefore = async (sql: Sql, time: Date, head: number): Promise<number> => {
  let before = (await readOldest(sql)) - 1;
  let after = head + 1;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    const [row] = await sql<{ is_before: boolean }[]>`
      select recorded_at < ${time} as is_before from events where "offset" = ${middle}`;
    if (row?.is_before === false) after = middle;
    else before = middle;
  }
  return before;
};

const replay_columns = (db: Db) => db`
  id, webhook_id, case when done_at is null then 'running' else 'done' end as status,
  after_offset as after, until_offset, next_offset, queued, started_at, done_at`;

/** Finds the last replay of a webhook, as responses show it. */
export const findReplay = async (db: Db, webhook_id: string) => {
  const [row] = await db`
    select ${replay_columns(db)} from webhook_replays where webhook_id = ${webhook_id}`;
  return row;
};

/**
 * Starts a replay of the offsets after `after`, up to `until`, and ends the pause of the webhook;
 * undefined while another replay is running.
 */
export const startReplay = async (
  db: Db,
  webhook_id: string,
  { after, until }: { readonly after: number; readonly until: number },
) => {
  const [row] = await db`
    with started as (
      insert into webhook_replays as r
        (webhook_id, id, after_offset, next_offset, until_offset, done_at)
      values
        (${webhook_id}, ${makeId()}, ${after}, ${after + 1}, ${until},
          case when ${after}::bigint >= ${until}::bigint then now() end)
      on conflict (webhook_id) do update
        set
          id = excluded.id,
          after_offset = excluded.after_offset,
          next_offset = excluded.next_offset,
          until_offset = excluded.until_offset,
          queued = 0,
          started_at = now(),
          done_at = excluded.done_at
        where r.done_at is not null
      returning ${replay_columns(db)}
    ),
    resumed as (
      update webhooks
      set trips = 0, paused_until = null
      where id = ${webhook_id} and exists (select from started)
    )
    select * from started`;
  return row;
};
