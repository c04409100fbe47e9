import type { Db, Sql } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import type { DeliveryState } from './schema.js';
import type { Attempt } from './signing.js';

/**
 * Deliveries in Postgres, the only place that decides which signer sends which delivery and when.
 *
 *   pending ─claim─▶ sending ─settle─▶ delivered | waiting | exhausted | expired | blocked
 *   waiting ─claim─▶ sending ─lease over─▶ pending | waiting, or exhausted at the fifth time
 *   pending | waiting ─webhook switched off─▶ skipped_disabled ─sent again or replayed─▶ pending
 *   pending | skipped_disabled ─too many or too old─▶ one row of state gap
 *
 * A claim gives a row a lease and a new `lease_id`, which is the fence. Settling names the
 * `lease_id`, so a signer whose lease has expired changes nothing. All times are database times.
 */

export interface Leased extends Omit<Attempt, 'event' | 'body' | 'offset'> {
  readonly owner_id: string;
  readonly offset: number;
  readonly event: string | null;
  /** Null if the delivery would come too late to be useful, or if its event is no longer stored. */
  readonly body: string | null;
  /** True for a retry, a delivery that was sent again by hand, or a replay. */
  readonly is_repeat: boolean;
  /** How many times in a row the breaker has opened. Above 0, this delivery is a probe. */
  readonly trips: number;
  readonly lease_id: string;
  /** The next event of the same question waits for this one. */
  readonly is_ordered: boolean;
}

/**
 * After this long without a sign of life, a signer counts as dead. A live signer reports each
 * second.
 */
const allowedSilence = (db: Db) => db`interval '6 seconds'`;

/** Records that a signer is alive, and deletes signers that have been silent for an hour. */
export const showAlive = async (db: Db, signer_id: string, slot: string | null): Promise<void> => {
  await db`
    with forgotten as (
      delete from signers where seen_at < now() - interval '1 hour' and id <> ${signer_id}
    )
    insert into signers (id, place, seen_at)
    values (${signer_id}, ${slot}, now())
    on conflict (id) do update set seen_at = now()`;
};

/** SQL: the replaced secrets of webhook `w` that still sign, oldest first. */
export const oldSecrets = (db: Db) => db`
  array(
    select o.secret_sealed
    from webhook_old_secrets o
    where o.webhook_id = w.id and o.until > now()
    order by o.replaced_at
  )`;

/** SQL: the question of event `e`, if webhook `w` gets events in order per question; else null. */
export const orderKey = (db: Db) => db`case when w."order" = 'question' then e.question_id end`;

/**
 * SQL: the deliveries in question order that may be sent to webhook `r` now. These are the first
 * open delivery of each question, unless a delivery of that question is being sent. A delivery also
 * waits for unplanned offsets before it, and for a replay that may still queue earlier events.
 */
const firstOfQuestions = (db: Db) => db`
  select d.ctid as place, d.next_at
  from (
    select distinct on (o.question_id)
      o.ctid as place, o.event_offset,
      bool_or(o.state = 'sending') over (partition by o.question_id) as is_busy
    from deliveries o
    where o.webhook_id = r.id
      and o.question_id is not null
      and o.state in ('pending', 'waiting', 'sending')
    order by o.question_id, o.event_offset
  ) first
  join deliveries d on d.ctid = first.place
  where not first.is_busy
    and d.next_at <= now()
    and d.event_offset <= (select planned_offset from delivery_plan)
    and not exists (
      select
      from webhook_replays p
      where p.webhook_id = r.id and p.done_at is null and p.next_offset <= d.event_offset
    )
  order by d.next_at
  limit r.room
  for update of d skip locked`;

/**
 * Removes the signer that had this place before. It is dead, so its leases become free immediately.
 */
export const forgetPredecessor = async (db: Db, slot: string | null): Promise<void> => {
  await db`delete from signers where place = ${slot}`;
};

interface ClaimOptions extends Record<'signer_id' | 'lease_id', string> {
  readonly lease_ms: number;
  /** The webhooks to look at; null for all. */
  readonly webhook_ids: readonly string[] | null;
  /** Number of deliveries that the signer holds for each webhook, and the maximum per webhook. */
  readonly held: ReadonlyMap<string, number>;
  readonly depth: number;
  /** Maximum number of deliveries to claim. */
  readonly room: number;
}

const claim_lock = 7_366_145;

/**
 * Claims due deliveries. One signer at a time holds all work of an owner, so it alone can enforce
 * the limits per endpoint and per owner. A webhook that is being probed gets one delivery at a
 * time. Webhooks come in random order, so that none of them is always last.
 */
export const claimDue = async (sql: Sql, options: ClaimOptions): Promise<Leased[]> =>
  sql.begin(async (tx) => {
    // Signers claim one after another, so the next statement sees the leases of the previous claim.
    // Sequential scans are off. A plan that was made while few deliveries were due would scan all
    // of them each time.
    await tx`
      select pg_advisory_xact_lock(${claim_lock}), set_config('enable_seqscan', 'off', true)`;
    return tx<Leased[]>`
      with held as (
        select *
        from unnest(${[...options.held.keys()]}::uuid[], ${[...options.held.values()]}::int[])
          as h (id, count)
      ),
      busy as materialized (
        select distinct w.owner_id
        from deliveries d
        join webhooks w on w.id = d.webhook_id
        join signers s on s.id = d.signer_id and s.seen_at > now() - ${allowedSilence(tx)}
        where d.state = 'sending' and d.signer_id <> ${options.signer_id} and d.lease_until > now()
      ),
      ready as (
        select
          w.id,
          case
            when w.trips = 0 then greatest(0, ${options.depth} - coalesce(h.count, 0))
            when exists (
              select from deliveries p where p.webhook_id = w.id and p.state = 'sending'
            ) then 0
            else 1
          end as room
        from webhooks w
        left join held h on h.id = w.id
        where w.active
          and (${options.webhook_ids as string[]}::uuid[] is null
            or w.id = any (${options.webhook_ids as string[]}::uuid[]))
          and (w.paused_until is null or w.paused_until <= now())
          and not exists (select from busy b where b.owner_id = w.owner_id)
        order by random()
      ),
      due as (
        select d.place
        from ready r
        cross join lateral (
          select place, next_at
          from (
            select d.ctid as place, d.next_at
            from deliveries d
            where d.webhook_id = r.id
              and d.question_id is null
              and d.state in ('pending', 'waiting')
              and d.next_at <= now()
            order by d.next_at
            limit r.room
            for update skip locked
          ) free
          union all
          select place, next_at
          from (${firstOfQuestions(tx)}) ordered
          order by next_at
          limit r.room
        ) d
        limit ${options.room}
      ),
      claimed as (
        update deliveries d
        set
          state = 'sending',
          claims = d.claims + 1,
          lease_id = ${options.lease_id},
          lease_until = now() + ${options.lease_ms} * interval '1 millisecond',
          signer_id = ${options.signer_id}
        -- Selects by ctid. A join that was planned for few rows would compare each with all.
        where d.ctid = any (array(select place from due))
        returning d.*
      )
      select
        d.webhook_id, w.owner_id, w.url, w.signature, w.secret_sealed, w.trips,
        ${oldSecrets(tx)} as old_secrets_sealed,
        d.event_id, d.id as delivery_id, d.event_offset as "offset", e.event, e.body,
        d.attempts + 1 as attempt, d.attempts > 0 or d.replays > 0 as is_repeat, d.lease_id,
        d.question_id is not null as is_ordered
      from claimed d
      join webhooks w on w.id = d.webhook_id
      left join lateral (
        select event, body
        from events
        where "offset" = d.event_offset
          and recorded_on = d.recorded_on
          and coalesce(d.expires_at > now(), true)
        limit 1
      ) e on true`;
  });

/**
 * The outcome of a claimed delivery. `released`: the delivery was not sent and is due as before.
 */
export interface Settlement {
  readonly webhook_id: string;
  readonly event_id: string;
  readonly lease_id: string;
  readonly state:
    | Extract<DeliveryState, 'delivered' | 'waiting' | 'exhausted' | 'expired' | 'blocked'>
    | 'released';
  /** Time until the next attempt. */
  readonly delay_ms: number;
  /** Number of the attempt; null if no attempt was made. */
  readonly attempt: number | null;
  readonly latency_ms?: number;
  readonly status?: number | null;
  readonly error?: string | null;
  readonly answer?: string;
  /** The new state of the webhook's breaker; null or missing if it does not change. */
  readonly breaker?: { readonly trips: number; readonly pause_ms: number } | null;
}

/**
 * Records attempts, and updates their deliveries and the breakers of their webhooks, in one
 * statement. Ignores settlements whose lease no longer holds. If a settlement is repeated, it has
 * no further effect. A webhook's row is written only when the webhook fails or recovers.
 *
 * The statement does not test the state, because only rows that are being sent have a lease. It
 * takes the time from the batch. If the state or the time were a constant, the planner would expect
 * almost no leased rows and would scan all of them once per settlement.
 */
export const settle = async (db: Db, all: readonly Settlement[]): Promise<void> => {
  const rows = all.map(({ breaker, ...rest }) => ({ ...rest, ...breaker }));
  await db`
    with given as (
      select *, now() as settled_at
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as g (
        webhook_id uuid, event_id uuid, lease_id uuid, state text, delay_ms bigint, attempt int,
        latency_ms int, status int, error text, answer text, trips int, pause_ms bigint
      )
    ),
    moved as (
      update deliveries d
      set
        state = case
          when g.state in ('waiting', 'released')
            and not exists (select from webhooks w where w.id = g.webhook_id and w.active)
          then 'skipped_disabled'
          when g.state = 'released' then case when d.attempts = 0 then 'pending' else 'waiting' end
          else g.state
        end,
        attempts = coalesce(g.attempt, d.attempts),
        claims = case when g.state = 'released' then d.claims - 1 else 0 end,
        next_at = case when g.state = 'released' then d.next_at
          else now() + g.delay_ms * interval '1 millisecond'
        end,
        lease_id = null,
        lease_until = null,
        signer_id = null,
        delivered_at = case when g.state = 'delivered' then now() end
      from given g
      where d.webhook_id = g.webhook_id
        and d.event_id = g.event_id
        and d.lease_id = g.lease_id
        and d.lease_until > g.settled_at
        -- These lists make Postgres use the index. A plan for few rows would compare each with all.
        and d.webhook_id = any (${all.map(({ webhook_id }) => webhook_id)}::uuid[])
        and d.event_id = any (${all.map(({ event_id }) => event_id)}::uuid[])
      returning g.*
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
    health as (
      select
        m.webhook_id as id,
        bool_or(m.state = 'delivered') as is_healed,
        count(*)::int as count,
        array_agg(m.event_id) as events,
        coalesce(array_agg(m.event_id) filter (where m.status = 410), '{}') as gone,
        max(m.trips) as trips,
        max(m.pause_ms) as pause_ms
      from moved m
      join webhooks w on w.id = m.webhook_id
      where m.attempt is not null
        and (m.state <> 'delivered' or w.failures > 0 or m.trips is not null)
      group by m.webhook_id
    ),
    held as (
      select w.id from webhooks w join health t on t.id = w.id order by w.id for no key update of w
    )
    update webhooks w
    set
      failing_since = case when not t.is_healed then coalesce(w.failing_since, now()) end,
      failures = case when t.is_healed then 0 else w.failures + t.count end,
      failed_events = case when t.is_healed then '{}'
        else array(select distinct unnest(w.failed_events || t.events) limit 3)
      end,
      gone_events = case when t.is_healed then '{}'
        else array(select distinct unnest(w.gone_events || t.gone) limit 2)
      end,
      trips = coalesce(t.trips, w.trips),
      paused_until = case
        when t.trips is null then w.paused_until
        when t.trips > 0 then now() + t.pause_ms * interval '1 millisecond'
      end
    from held h
    join health t on t.id = h.id
    where w.id = h.id`;
};

/** Counts due deliveries of webhooks that may be called now, up to 10,000. */
export const countDue = (db: Db): Promise<number> =>
  readTotal(db`
    select count(*)::integer as total from (
      select from deliveries join webhooks on webhooks.id = webhook_id
      where state in ('pending', 'waiting') and next_at <= now() and active
        and coalesce(paused_until <= now(), true) limit 10000
    ) due`);

/** After this many claims without a result, a delivery is assumed to crash its signers. */
const max_claims = 5;

/**
 * Makes deliveries due again if their lease expired, their signer is gone, or this signer claimed
 * them but got no answer. Deliveries that were claimed too often without a result are exhausted. If
 * a signer was only silent, the fence rejects its settlements.
 */
export const sweepExpired = async (
  db: Db,
  { signer_id, lease_ids }: { readonly signer_id: string; readonly lease_ids: readonly string[] },
) => db<{ id: string; state: DeliveryState }[]>`
  update deliveries d
  set
    state = case
      when d.claims >= ${max_claims} then 'exhausted'
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
        or (o.signer_id = ${signer_id} and o.lease_id <> all (${lease_ids as string[]}::uuid[]))
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
