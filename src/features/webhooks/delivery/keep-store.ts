import { makeId } from '../../../kit/ids.js';
import type { Db, Sql, Tx } from '../../../kit/pg/client.js';

/**
 * What keeps the tables of deliveries small and true, in steps of a bounded size: each is a short
 * transaction of its own, may be repeated, and passes over rows that somebody else works on.
 */

/** Rows that one step moves or removes. */
export const rows_a_step = 2_000;

/**
 * Skips what a webhook that is off, or was, still had to be sent; returns how many rows moved. What
 * was queued after it was switched on again stays.
 */
export const skipQueued = async (
  db: Db,
  webhook_id: string,
  most = rows_a_step,
): Promise<number> => {
  const moved = await db`
    update deliveries d
    set state = 'skipped_disabled'
    from (
      select d.webhook_id, d.event_id
      from webhooks w
      join deliveries d on d.webhook_id = w.id
      where w.id = ${webhook_id}
        and (not w.active or d.queued_at <= w.skip_before)
        and d.state in ('pending', 'waiting')
      limit ${most}
      for update of d skip locked
    ) off
    where d.webhook_id = off.webhook_id and d.event_id = off.event_id`;
  return moved.count;
};

/** Webhooks that are off, or were, with something in their queue that may have to be skipped. */
export const listUnclear = async (db: Db): Promise<string[]> => {
  const rows = await db<{ id: string }[]>`
    select w.id
    from webhooks w
    where (not w.active or w.skip_before is not null)
      and (
        w.skip_before is not null
        or exists (
          select from deliveries d where d.webhook_id = w.id and d.state in ('pending', 'waiting')
        )
      )
    order by w.id
    limit 1000`;
  return rows.map(({ id }) => id);
};

/** Where all is skipped, what was queued since may be sent. */
export const noteClear = async (db: Db, webhook_id: string): Promise<void> => {
  await db`
    update webhooks w
    set skip_before = null
    where w.id = ${webhook_id}
      and w.skip_before is not null
      and not exists (
        select
        from deliveries d
        where d.webhook_id = w.id
          and d.state in ('pending', 'waiting')
          and d.queued_at <= w.skip_before
      )`;
};

/** Removes deliveries of a deleted webhook with their attempts; returns how many. */
export const removeDeliveries = async (
  db: Db,
  webhook_id: string,
  most = rows_a_step,
): Promise<number> => {
  const [row] = await db<{ count: number }[]>`
    with gone as (
      delete from deliveries d
      using (
        select webhook_id, event_id
        from deliveries
        where webhook_id = ${webhook_id}
        limit ${most}
        for update skip locked
      ) few
      where d.webhook_id = few.webhook_id and d.event_id = few.event_id
      returning d.event_id
    ),
    forgotten as (
      delete from attempts a
      using gone
      where a.webhook_id = ${webhook_id} and a.event_id = gone.event_id
    )
    select count(*)::int as count from gone`;
  return row?.count ?? 0;
};

/**
 * Webhooks that were deleted. A hand-off that began before the deletion may still plan for one, so
 * it is remembered for longer than any transaction lasts.
 */
export const listLeavings = async (db: Db): Promise<string[]> => {
  const rows = await db<{ webhook_id: string }[]>`
    select webhook_id from webhook_leavings order by deleted_at limit 100`;
  return rows.map(({ webhook_id }) => webhook_id);
};

export const forgetLeavings = async (db: Db): Promise<void> => {
  await db`
    delete from webhook_leavings l
    where l.deleted_at < now() - interval '10 minutes'
      and not exists (select from deliveries d where d.webhook_id = l.webhook_id)`;
};

export interface Sick {
  readonly id: string;
  readonly owner_kind: 'agent' | 'human';
  readonly owner_id: string;
  /** Of an owner that is a person. */
  readonly email: string | null;
  readonly url: string;
  readonly disabled_reason: string;
  readonly updated_at: Date;
}

/** Switches off webhooks whose receivers are gone, and says why. */
export const disableSick = async (tx: Tx): Promise<Sick[]> => tx<Sick[]>`
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
    skip_before = now(),
    updated_at = now()
  where active and failures > 0 and ${isSick(tx)}
  returning
    id, owner_kind, owner_id, url, disabled_reason, updated_at,
    (select h.email from humans h where owner_kind = 'human' and h.id = owner_id) as email`;

/** A 410 for each of two events, or 5 days without success. */
export const isSick = (db: Db) => db`(
  cardinality(gone_events) >= 2
  or (
    failures >= 20
    and cardinality(failed_events) >= 3
    and failing_since <= now() - interval '5 days'
  )
)`;

export interface Backlog {
  /** Most deliveries that wait for one webhook. */
  readonly most: number;
  /** What has waited longer for its first attempt is left out. */
  readonly age_hours: number;
}

/** Webhooks that one round looks at closely. */
const suspects_a_round = 10;

/**
 * Webhooks, after an id, that may have more than the bounds allow: what has waited the longest is
 * old, or so many events ago that there may be too many since. Looks at one row of each queue, not
 * at the whole of it.
 */
export const listSuspects = async (
  db: Db,
  { most, age_hours }: Backlog,
  after: string,
): Promise<string[]> => {
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
    where w.id > ${after}
      and (
        front.event_offset <= h."offset" - ${most}
        or front.queued_at < now() - ${age_hours} * interval '1 hour'
      )
    group by w.id
    order by w.id
    limit ${suspects_a_round}`;
  return rows.map(({ id }) => id);
};

interface LeftOut {
  readonly count: number;
  readonly first: number;
  readonly last: number;
  readonly recorded_on: string;
  readonly is_backlog: boolean;
}

/** Takes out what is beyond the bounds and was never tried, oldest first. */
const takeOut = async (
  tx: Tx,
  webhook_id: string,
  { most, age_hours, states }: Backlog & { readonly states: readonly string[] },
): Promise<LeftOut | undefined> => {
  const [left_out] = await tx<(LeftOut | { readonly count: 0 })[]>`
    with waiting as (
      select event_id, event_offset, attempts, state, replays, queued_at,
        row_number() over (order by event_offset) > ${most} as is_beyond
      from deliveries
      where webhook_id = ${webhook_id} and state = any (${states as string[]}::text[])
    ),
    gone as (
      delete from deliveries d
      using (
        select event_id, is_beyond
        from waiting
        where attempts = 0
          and replays = 0
          and (is_beyond or queued_at < now() - ${age_hours} * interval '1 hour')
        order by event_offset
        limit ${10 * rows_a_step}
      ) cut
      where d.webhook_id = ${webhook_id}
        and d.event_id = cut.event_id
        and d.state = any (${states as string[]}::text[])
        and d.attempts = 0
      returning d.event_offset, d.recorded_on, cut.is_beyond
    )
    select
      count(*)::int as count, min(event_offset) as first, max(event_offset) as last,
      min(recorded_on)::text as recorded_on, bool_or(is_beyond) as is_backlog
    from gone`;
  return left_out === undefined || left_out.count === 0 ? undefined : (left_out as LeftOut);
};

const cut_lock = 7_366_145;

/**
 * Leaves out what is beyond the bounds and says so in one row, which grows as long as there is more
 * within an hour; returns how many. Everything left out is in the log and can be replayed.
 */
export const leaveOut = async (sql: Sql, webhook_id: string, backlog: Backlog): Promise<number> =>
  sql.begin(async (tx) => {
    const [held] = await tx<{ is_mine: boolean }[]>`
      select pg_try_advisory_xact_lock(${cut_lock}, hashtext(${webhook_id})) as is_mine`;
    if (held?.is_mine !== true) return 0;
    let count = 0;
    for (const states of [['pending', 'waiting'], ['skipped_disabled']]) {
      const out = await takeOut(tx, webhook_id, { ...backlog, states });
      if (out !== undefined) await noteGap(tx, webhook_id, out);
      count += out?.count ?? 0;
    }
    return count;
  });

const noteGap = async (tx: Tx, webhook_id: string, out: LeftOut): Promise<void> => {
  const reason = out.is_backlog ? 'backlog' : 'age';
  const grown = await tx`
    update deliveries
    set
      event_offset = least(event_offset, ${out.first}),
      gap_until_offset = greatest(gap_until_offset, ${out.last}),
      gap_count = gap_count + ${out.count},
      gap_reason = ${reason},
      queued_at = now()
    where webhook_id = ${webhook_id}
      and event_id = (
        select event_id
        from deliveries
        where webhook_id = ${webhook_id} and state = 'gap'
          and queued_at > now() - interval '1 hour'
        order by queued_at desc
        limit 1
      )`;
  if (grown.count > 0) return;
  const event_id = makeId();
  await tx`
    insert into deliveries
      (webhook_id, event_id, id, event_offset, recorded_on, state, next_at,
        gap_until_offset, gap_count, gap_reason)
    values
      (${webhook_id}, ${event_id}, delivery_id(${webhook_id}, ${event_id}), ${out.first},
        ${out.recorded_on}, 'gap', now(), ${out.last}, ${out.count}, ${reason})`;
};

/** Removes what is over and older than is kept, of webhooks after an id; null: none are left. */
export const removeOld = async (
  db: Db,
  after: string,
  { oldest_id, keep_days }: { readonly oldest_id: string; readonly keep_days: number },
): Promise<string | null> => {
  const [row] = await db<{ last: string | null }[]>`
    with few as (
      select id from webhooks where id > ${after} order by id limit 50
    ),
    old as (
      delete from deliveries d
      using (
        select o.webhook_id, o.event_id
        from few
        cross join lateral (
          select d.webhook_id, d.event_id
          from deliveries d
          where d.webhook_id = few.id
            and d.event_id < ${oldest_id}
            and d.state not in ('pending', 'waiting', 'sending')
            and d.queued_at < now() - ${keep_days} * interval '1 day'
          order by d.event_id
          limit ${rows_a_step}
          for update skip locked
        ) o
      ) o
      where d.webhook_id = o.webhook_id and d.event_id = o.event_id
    )
    select max(id::text) as last from few`;
  return row?.last ?? null;
};

/** Forgets secrets that no longer sign. */
export const dropOldSecrets = async (db: Db): Promise<void> => {
  await db`
    update webhooks
    set old_secret_sealed = null, old_secret_until = null
    where old_secret_until < now()`;
};
