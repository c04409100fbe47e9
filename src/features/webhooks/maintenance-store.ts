import type { Db, Tx } from '../../db/client.js';
import { firstIdAt } from '../../kit/ids.js';
import type { AttemptOutcome } from './signing.js';

/**
 * Statements that keep the tables of deliveries small and correct. Each statement can be repeated,
 * does a limited amount of work, and skips rows that another process is working on.
 */

/** Skips the queued deliveries of one inactive webhook, or of all inactive webhooks. */
export const skipQueued = async (db: Db, webhook_id: string | null = null): Promise<void> => {
  await db`
    update deliveries d
    set state = 'skipped_disabled'
    from (
      select d.webhook_id, d.event_id
      from webhooks w
      join deliveries d on d.webhook_id = w.id
      where not w.active
        and (${webhook_id}::uuid is null or w.id = ${webhook_id})
        and d.state in ('pending', 'waiting')
      limit 20000
      for update of d skip locked
    ) off
    where d.webhook_id = off.webhook_id and d.event_id = off.event_id`;
};

/** Maximum number of rows that one statement removes. */
export const max_removed = 5_000;

/**
 * Removes deliveries of deleted webhooks with their attempts; returns how many. Planning that
 * started before a deletion may still add deliveries, so a deletion is remembered for longer than a
 * transaction lasts.
 */
export const removeOfDeleted = async (db: Db): Promise<number> => {
  const [row] = await db<{ count: number }[]>`
    with gone as (
      delete from deliveries d
      using (
        select d.webhook_id, d.event_id
        from webhook_leavings l
        cross join lateral (
          select d.webhook_id, d.event_id
          from deliveries d
          where d.webhook_id = l.webhook_id
          limit ${max_removed}
          for update skip locked
        ) d
        limit ${max_removed}
      ) few
      where d.webhook_id = few.webhook_id and d.event_id = few.event_id
      returning d.webhook_id, d.event_id
    ),
    forgotten as (
      delete from attempts a
      using gone
      where a.webhook_id = gone.webhook_id and a.event_id = gone.event_id
    )
    select count(*)::int as count from gone`;
  await db`
    delete from webhook_leavings l
    where l.deleted_at < now() - interval '10 minutes'
      and not exists (select from deliveries d where d.webhook_id = l.webhook_id)`;
  return row?.count ?? 0;
};

export interface Sick {
  readonly id: string;
  readonly owner_kind: 'agent' | 'human';
  readonly owner_id: string;
  /** E-mail address of the owner; null if the owner is an agent. */
  readonly email: string | null;
  readonly url: string;
  readonly disabled_reason: string;
  readonly updated_at: Date;
}

/** The owner is notified after this many failures in a row, and this long after the first one. */
const telling = { failures: 5, minutes: 10 } as const;

export type Failing = Omit<Sick, 'disabled_reason' | 'updated_at'> & {
  readonly failures: number;
  readonly failing_since: Date;
  readonly warned_at: Date;
  /** Result of the newest failed attempt. */
  readonly last: Pick<AttemptOutcome, 'status' | 'error'> | null;
};

/**
 * Returns webhooks that have started to fail, long before they are switched off. Reports each
 * webhook once per series of failures, and at most once an hour.
 */
export const markFailing = (tx: Tx) => tx<Failing[]>`
  update webhooks
  set warned_at = now()
  where active
    and failures > 0
    and failures >= ${telling.failures}
    and failing_since <= now() - ${telling.minutes}::int * interval '1 minute'
    and coalesce(warned_at < failing_since and warned_at < now() - interval '1 hour', true)
  returning
    id, owner_kind, owner_id, url, failures, failing_since, warned_at,
    (
      select json_build_object('status', a.status, 'error', a.error)
      from attempts a
      where a.webhook_id = webhooks.id and coalesce(a.status not between 200 and 299, true)
      order by a.event_id desc, a.at desc
      limit 1
    ) as last,
    (select h.email from humans h where owner_kind = 'human' and h.id = owner_id) as email`;

/** Switches off webhooks after a 410 answer to two events, or after 5 days without success. */
export const disableSick = (tx: Tx) => tx<Sick[]>`
  update webhooks
  set
    active = false,
    disabled_reason = case
      when cardinality(gone_events) >= 2
        then 'The receiver answered 410 Gone to two events.'
      else 'No delivery succeeded for 5 days: ' || failures
        || ' attempts failed, the first at '
        || to_char(failing_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || '.'
    end,
    updated_at = now()
  where active
    and failures > 0
    and (
      cardinality(gone_events) >= 2
      or (
        failures >= 20
        and cardinality(failed_events) >= 3
        and failing_since <= now() - interval '5 days'
      )
    )
  returning
    id, owner_kind, owner_id, url, disabled_reason, updated_at,
    (select h.email from humans h where owner_kind = 'human' and h.id = owner_id) as email`;

export interface Backlog {
  /** Maximum number of deliveries that wait for one webhook. */
  readonly most: number;
  /** A delivery that has waited longer for its first attempt is left out. */
  readonly age_hours: number;
}

/**
 * Returns webhooks that may exceed the limits. Either their oldest queued delivery is too old, or
 * at least `most` events have followed it. Reads one row of each queue, not the whole queue.
 */
export const listBacklogs = async (db: Db, { most, age_hours }: Backlog): Promise<string[]> => {
  const rows = await db<{ id: string }[]>`
    select w.id
    from webhooks w
    cross join log_head h
    cross join lateral (
      (
        select d.event_offset, d.queued_at
        from deliveries d
        where d.webhook_id = w.id and d.state in ('pending', 'waiting')
        order by d.next_at
        limit 1
      )
      union all
      (
        select d.event_offset, d.queued_at
        from deliveries d
        where d.webhook_id = w.id and d.state = 'skipped_disabled'
        order by d.event_offset
        limit 1
      )
    ) front
    where front.event_offset <= h."offset" - ${most}
      or front.queued_at < now() - ${age_hours} * interval '1 hour'
    group by w.id
    order by random()
    limit 1000`;
  return rows.map(({ id }) => id);
};

const hour_ms = 3_600_000;

/**
 * Leaves out deliveries that exceed the limits and were never tried, and records them in one row of
 * state `gap`. That row grows if more are left out within the same hour. Returns how many were left
 * out. All of them are still in the log and can be replayed.
 */
export const leaveOut = async (
  db: Db,
  webhook_id: string,
  { most, age_hours }: Backlog,
): Promise<number> => {
  const gap_id = firstIdAt(Math.floor(Date.now() / hour_ms) * hour_ms);
  const [row] = await db<{ count: number }[]>`
    with queued as (
      select event_id, event_offset, attempts, replays, queued_at,
        row_number() over (order by event_offset) > ${most} as is_beyond
      from deliveries
      where webhook_id = ${webhook_id} and state in ('pending', 'waiting', 'skipped_disabled')
    ),
    gone as (
      delete from deliveries d
      using (
        select event_id, is_beyond
        from queued
        where attempts = 0
          and replays = 0
          and (is_beyond or queued_at < now() - ${age_hours} * interval '1 hour')
        order by event_offset
        limit 20000
      ) q
      where d.webhook_id = ${webhook_id}
        and d.event_id = q.event_id
        and d.state in ('pending', 'waiting', 'skipped_disabled')
        and d.attempts = 0
      returning d.event_offset, d.recorded_on, q.is_beyond
    ),
    noted as (
      insert into deliveries as d
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, gap_until_offset,
          gap_count, gap_reason)
      select
        ${webhook_id}, ${gap_id}, delivery_id(${webhook_id}, ${gap_id}), min(event_offset),
        min(recorded_on), 'gap', now(), max(event_offset), count(*),
        case when bool_or(is_beyond) then 'backlog' else 'age' end
      from gone
      having count(*) > 0
      on conflict (webhook_id, event_id) do update
        set
          event_offset = least(d.event_offset, excluded.event_offset),
          gap_until_offset = greatest(d.gap_until_offset, excluded.gap_until_offset),
          gap_count = d.gap_count + excluded.gap_count,
          gap_reason = excluded.gap_reason,
          queued_at = now()
    )
    select count(*)::int as count from gone`;
  return row?.count ?? 0;
};

/** Removes finished deliveries that are older than the retention time; returns how many. */
export const removeOld = async (
  db: Db,
  { oldest_id, keep_days }: { readonly oldest_id: string; readonly keep_days: number },
): Promise<number> => {
  const gone = await db`
    delete from deliveries d
    using (
      select o.webhook_id, o.event_id
      from webhooks w
      cross join lateral (
        select d.webhook_id, d.event_id
        from deliveries d
        where d.webhook_id = w.id
          and d.event_id < ${oldest_id}
          and d.state not in ('pending', 'waiting', 'sending')
          and d.queued_at < now() - ${keep_days} * interval '1 day'
        order by d.event_id
        limit ${max_removed}
        for update skip locked
      ) o
      limit ${max_removed}
    ) o
    where d.webhook_id = o.webhook_id and d.event_id = o.event_id`;
  return gone.count;
};
