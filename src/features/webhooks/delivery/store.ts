import type { Db, Sql, Tx } from '../../../kit/pg/client.js';
import type { DeliveryState } from '../schema.js';
import { isSick } from './keep-store.js';

/**
 * Deliveries in Postgres, which alone decides who sends what and when.
 *
 *   planned ──▶ pending, or sending when the signer that plans it has room
 *   pending ─claim─▶ sending ─settle─▶ delivered | waiting | exhausted | expired | blocked
 *   waiting ─claim─▶ sending ─lease over─▶ pending | waiting, or exhausted at the fifth time
 *   pending | waiting ─webhook switched off─▶ skipped_disabled ─sent again or replayed─▶ pending
 *   pending | skipped_disabled ─too many or too old─▶ one row of state gap
 *
 * A claim gives a row a lease and a new `lease_id`, the fence: settling and releasing name it, so a
 * signer that slept through its lease changes nothing. All times are those of the database.
 */

/** A delivery that this signer may send. */
export interface Leased {
  readonly webhook_id: string;
  readonly owner_id: string;
  readonly url: string;
  readonly secret_sealed: Uint8Array;
  /** The secret before a rotation, while both sign. */
  readonly old_secret_sealed: Uint8Array | null;
  readonly event_id: string;
  readonly id: string;
  readonly event_offset: number;
  readonly event: string | null;
  /** Null where it would come too late to be of use, or its event is not kept any more. */
  readonly body: string | null;
  /** Made so far. */
  readonly attempts: number;
  /** It was sent again by hand or is replayed. */
  readonly is_replay: boolean;
  /** How often the breaker of the webhook opened in a row; above 0 this is a probe. */
  readonly trips: number;
  readonly lease_id: string;
}

/** Of rows `d` of deliveries; their events are found one by one, however many the log has. */
export const leasedColumns = (db: Db) => db`
  d.webhook_id, w.owner_id, w.url, w.secret_sealed, w.trips,
  case when w.old_secret_until > now() then w.old_secret_sealed end as old_secret_sealed,
  d.event_id, d.id, d.event_offset, e.event, e.body, d.attempts, d.replays > 0 as is_replay,
  d.lease_id`;
export const withLeased = (db: Db) => db`
  join webhooks w on w.id = d.webhook_id
  left join lateral (
    select event, body
    from events
    where "offset" = d.event_offset
      and recorded_on = d.recorded_on
      and coalesce(d.expires_at > now(), true)
    limit 1
  ) e on true`;

/** After this much silence a signer is taken for dead; it speaks each second. */
const allowedSilence = (db: Db) => db`interval '6 seconds'`;

/** Says that a signer lives, and forgets those that have long been silent. */
export const showAlive = async (db: Db, signer_id: string): Promise<void> => {
  await db`
    with forgotten as (
      delete from signers where seen_at < now() - interval '1 hour' and id <> ${signer_id}
    )
    insert into signers (id, seen_at)
    values (${signer_id}, now())
    on conflict (id) do update set seen_at = now()`;
};

/** What a signer can take on, and for how long. */
export interface LeaseAsk {
  readonly signer_id: string;
  readonly lease_id: string;
  readonly lease_ms: number;
  /** On the monotonic clock of its process. */
  readonly asked_ms: number;
  /** Room at webhooks that it already works for. */
  readonly rooms: ReadonlyMap<string, number>;
  /** Room at each other. */
  readonly depth: number;
  /** Room in all. */
  readonly room: number;
}

/**
 * Signers plan and claim by turns, so that each sees what the one before it leased. A statement of
 * its own: the one after it sees what was committed while this one waited.
 */
export const lockPlan = async (tx: Tx): Promise<void> => {
  await tx`select from delivery_plan for no key update`;
};

/**
 * The work of one owner is held by one signer at a time, which is how it keeps the limits of
 * endpoints and owners by itself.
 */
export const busyOwners = (db: Db, signer_id: string | null) => db`
  select distinct w.owner_id
  from deliveries d
  join webhooks w on w.id = d.webhook_id
  join signers s on s.id = d.signer_id and s.seen_at > now() - ${allowedSilence(db)}
  where d.state = 'sending' and d.signer_id <> ${signer_id}::uuid and d.lease_until > now()`;

export const knownRooms = (db: Db, rooms: ReadonlyMap<string, number> = new Map()) => db`
  select *
  from unnest(${[...rooms.keys()]}::uuid[], ${[...rooms.values()]}::int[]) as k (id, room)`;

/**
 * Claims due deliveries, of all webhooks in the order of their ids after one of them, or, with
 * `after` null, of those only for which `rooms` has room. One that is probed gets one at a time.
 */
export const claimDue = async (
  sql: Sql,
  ask: LeaseAsk & { readonly after: string | null },
): Promise<Leased[]> => {
  const { signer_id, lease_id, lease_ms, after } = ask;
  return sql.begin(async (tx) => {
    await lockPlan(tx);
    return tx<Leased[]>`
      with known as (${knownRooms(tx, ask.rooms)}),
      busy as materialized (${busyOwners(tx, signer_id)}),
      ready as (
        select
          w.id,
          case
            when w.trips = 0 then coalesce(k.room, ${ask.depth})
            when exists (
              select from deliveries p where p.webhook_id = w.id and p.state = 'sending'
            ) then 0
            else 1
          end as room
        from webhooks w
        left join known k on k.id = w.id
        where w.active
          and w.skip_before is null
          and (w.paused_until is null or w.paused_until <= now())
          and coalesce(k.room, case when ${after}::uuid is null then 0 else 1 end) > 0
          and not exists (select from busy b where b.owner_id = w.owner_id)
        order by w.id <= ${after}::uuid, w.id
      ),
      due as (
        select d.webhook_id, d.event_id
        from ready r
        cross join lateral (
          select d.webhook_id, d.event_id
          from deliveries d
          where d.webhook_id = r.id and d.state in ('pending', 'waiting') and d.next_at <= now()
          order by d.next_at
          limit r.room
          for update skip locked
        ) d
        limit ${ask.room}
      ),
      claimed as (
        update deliveries d
        set
          state = 'sending',
          claims = d.claims + 1,
          lease_id = ${lease_id},
          lease_until = now() + ${lease_ms} * interval '1 millisecond',
          signer_id = ${signer_id}
        from due
        where d.webhook_id = due.webhook_id and d.event_id = due.event_id
        returning d.*
      )
      select ${leasedColumns(tx)} from claimed d ${withLeased(tx)}`;
  });
};

export interface Settlement {
  readonly webhook_id: string;
  readonly event_id: string;
  readonly lease_id: string;
  readonly state: Extract<
    DeliveryState,
    'delivered' | 'waiting' | 'exhausted' | 'expired' | 'blocked'
  >;
  /** Until the next attempt. */
  readonly delay_ms: number;
  /** What is noted of the attempt; null when none was made. */
  readonly attempt: {
    readonly number: number;
    readonly latency_ms: number;
    readonly status: number | null;
    readonly error: string | null;
    readonly answer: string;
  } | null;
}

const keyOf = (row: { webhook_id: string; event_id: string }): string =>
  `${row.webhook_id} ${row.event_id}`;

/** What a settlement came to: `lost` when the lease was over, `sick` when its webhook is to go. */
export type Settled = 'lost' | 'settled' | 'sick';

/**
 * Notes attempts and moves their deliveries, in one statement, where the lease still stands; run
 * again, a settlement that took effect changes nothing. A webhook's row is written only when it
 * fails or recovers.
 *
 * Only rows that are being sent have a lease, so the state is not asked for, and the time comes
 * from the batch: with either as a constant the planner expects next to no leased rows, and goes
 * through all of them once for each settlement.
 */
export const settle = async (db: Db, all: readonly Settlement[]): Promise<Settled[]> => {
  const moved = await db<{ webhook_id: string; event_id: string; is_sick: boolean }[]>`
    with given as (
      select *, now() as settled_at
      from unnest(
        ${all.map((s) => s.webhook_id)}::uuid[],
        ${all.map((s) => s.event_id)}::uuid[],
        ${all.map((s) => s.lease_id)}::uuid[],
        ${all.map((s) => s.state)}::text[],
        ${all.map((s) => s.delay_ms)}::bigint[],
        ${all.map((s) => s.attempt?.number ?? null)}::int[],
        ${all.map((s) => s.attempt?.latency_ms ?? null)}::int[],
        ${all.map((s) => s.attempt?.status ?? null)}::int[],
        ${all.map((s) => s.attempt?.error ?? null)}::text[],
        ${all.map((s) => s.attempt?.answer ?? null)}::text[]
      ) as g (
        webhook_id, event_id, lease_id, state, delay_ms, attempt, latency_ms, status, error, answer
      )
    ),
    moved as (
      update deliveries d
      set
        state = case
          when g.state = 'waiting'
            and not exists (select from webhooks w where w.id = g.webhook_id and w.active)
          then 'skipped_disabled'
          else g.state
        end,
        attempts = coalesce(g.attempt, d.attempts),
        claims = 0,
        next_at = now() + g.delay_ms * interval '1 millisecond',
        lease_id = null,
        lease_until = null,
        signer_id = null,
        delivered_at = case when g.state = 'delivered' then now() end
      from given g
      where d.webhook_id = g.webhook_id
        and d.event_id = g.event_id
        and d.lease_id = g.lease_id
        and d.lease_until > g.settled_at
      returning
        d.webhook_id, d.event_id, g.state, g.attempt, g.latency_ms, g.status, g.error, g.answer
    ),
    noted as (
      insert into attempts
        (webhook_id, event_id, attempt, at, latency_ms, status, error, answer)
      select
        webhook_id, event_id, attempt, now() - latency_ms * interval '1 millisecond', latency_ms,
        status, error, nullif(answer, '')
      from moved
      where attempt is not null
    ),
    told as (
      select
        m.webhook_id as id,
        bool_or(m.state = 'delivered') as is_healed,
        count(*)::int as count,
        array_agg(m.event_id) as events,
        coalesce(array_agg(m.event_id) filter (where m.status = 410), '{}') as gone
      from moved m
      join webhooks w on w.id = m.webhook_id
      where m.attempt is not null and (m.state <> 'delivered' or w.failures > 0)
      group by m.webhook_id
    ),
    held as (
      select w.id from webhooks w join told t on t.id = w.id order by w.id for no key update of w
    ),
    marked as (
      update webhooks w
      set
        failing_since = case when not t.is_healed then coalesce(w.failing_since, now()) end,
        failures = case when t.is_healed then 0 else w.failures + t.count end,
        failed_events = case when t.is_healed then '{}'
          else array(select distinct unnest(w.failed_events || t.events) limit 3)
        end,
        gone_events = case when t.is_healed then '{}'
          else array(select distinct unnest(w.gone_events || t.gone) limit 2)
        end
      from held h
      join told t on t.id = h.id
      where w.id = h.id
      returning w.id, w.active and ${isSick(db)} as is_sick
    )
    select m.webhook_id, m.event_id, coalesce(k.is_sick, false) as is_sick
    from moved m
    left join marked k on k.id = m.webhook_id`;
  const done = new Map(moved.map((row) => [keyOf(row), row.is_sick ? 'sick' : 'settled'] as const));
  return all.map((s) => done.get(keyOf(s)) ?? 'lost');
};

/**
 * The breaker of a webhook: opens it for a time, as the `trips`th time in a row, or closes it.
 * Changes no more than that, so that nothing is told of it to the owner of the webhook's settings.
 */
export const setBreaker = async (
  db: Db,
  webhook_id: string,
  { trips, pause_ms }: { readonly trips: number; readonly pause_ms: number },
): Promise<void> => {
  await db`
    update webhooks
    set
      trips = ${trips},
      paused_until = case when ${trips} > 0
        then now() + ${pause_ms} * interval '1 millisecond'
      end
    where id = ${webhook_id} and (trips > 0 or ${trips} > 0)`;
};

/** Gives back what was claimed and not sent; such a claim does not count. */
export const release = async (
  db: Db,
  rows: readonly Pick<Leased, 'webhook_id' | 'event_id' | 'lease_id'>[],
): Promise<void> => {
  await db`
    update deliveries d
    set
      state = case when d.attempts = 0 then 'pending' else 'waiting' end,
      claims = d.claims - 1,
      lease_id = null,
      lease_until = null,
      signer_id = null
    from unnest(
      ${rows.map((row) => row.webhook_id)}::uuid[],
      ${rows.map((row) => row.event_id)}::uuid[],
      ${rows.map((row) => row.lease_id)}::uuid[]
    ) as g (webhook_id, event_id, lease_id)
    where d.webhook_id = g.webhook_id
      and d.event_id = g.event_id
      and d.lease_id = g.lease_id`;
};

/** Gives back everything that these leases hold. */
export const releaseLeases = async (db: Db, lease_ids: readonly string[]): Promise<void> => {
  await db`
    update deliveries
    set
      state = case when attempts = 0 then 'pending' else 'waiting' end,
      claims = claims - 1,
      lease_id = null,
      lease_until = null,
      signer_id = null
    where state = 'sending' and lease_id = any (${lease_ids as string[]}::uuid[])`;
};

/** Claims without a result after which a delivery is taken for one that kills its signers. */
const most_claims = 5;

export interface Swept {
  readonly id: string;
  readonly state: DeliveryState;
}

/**
 * Makes deliveries due again whose lease ran out or whose signer is gone; those claimed too often
 * in vain end here. A signer that was only silent finds the fence when it settles.
 */
export const sweepExpired = async (db: Db): Promise<Swept[]> => db<Swept[]>`
  update deliveries d
  set
    state = case
      when d.claims >= ${most_claims} then 'exhausted'
      when d.attempts = 0 then 'pending'
      else 'waiting'
    end,
    next_at = now(),
    lease_id = null,
    lease_until = null,
    signer_id = null
  from (
    select o.webhook_id, o.event_id
    from deliveries o
    where o.state = 'sending'
      and (
        o.lease_until <= now()
        or not exists (
          select from signers s where s.id = o.signer_id and s.seen_at > now() - ${allowedSilence(db)}
        )
      )
    order by o.lease_until
    limit 1000
    for update skip locked
  ) over
  where d.webhook_id = over.webhook_id and d.event_id = over.event_id
  returning d.id, d.state`;
