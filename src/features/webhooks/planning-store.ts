import type { Db, Sql, Tx } from '../../db/client.js';
import { question_closing_soon } from '../events/catalogue.js';
import { passesSql } from '../events/index.js';
import { orderKey } from './sending-store.js';

/**
 * Decides which events become deliveries of which webhooks, for signers and for replays.
 *
 * For each offset up to `planned_offset`, every wanted delivery has its row. `planned_ranges` holds
 * the planned offsets beyond it. An offset is planned once. If a signer reads a part of the log
 * again, because the first reader died or was slow, that part is already planned and nothing is
 * added.
 */
/** SQL condition: webhook `w` asked for event `e` and may see it. */
const isWanted = (db: Db) => db`
  ${passesSql(db, {
    events: db`w.events`,
    question_ids: db`w.filter_questions`,
    categories: db`w.filter_categories`,
    model_family: db`w.filter_families`,
    min_confidence: db`w.filter_confidence`,
  })}
  and (
    e.audience_id is null
    or (w.owner_kind = 'agent' and w.owner_id = e.audience_id)
    or (
      w.owner_kind = 'human'
      and w.owner_id = (select a.owner_id from agents a where a.id = e.audience_id)
    )
  )`;

/** SQL: the time after which a delivery of event `e` would come too late to be useful. */
const expiry = (db: Db) => db`
  case when e.event = ${question_closing_soon.name}
    then (e.body::jsonb #>> '{data,closes_at}')::timestamptz
  end`;

export type Range = { readonly first: number; readonly last: number };

/**
 * Plans a range of offsets: one delivery for each unplanned event and each webhook that wants it.
 * Returns the ids of webhooks that now have something to send. Inactive webhooks get deliveries
 * too, so that these can be replayed.
 */
export const planDeliveries = async (tx: Tx, { first, last }: Range): Promise<string[]> => {
  const [plan] = await tx<{ first: number; last: number }[]>`
    select greatest(${first}, p.planned_offset + 1) as first, least(${last}, h."offset") as last
    from delivery_plan p
    cross join log_head h
    for no key update of p`;
  if (plan === undefined || plan.first > plan.last) return [];
  const recent = await insertPlanned(
    tx,
    plan,
    tx`recorded_on >= (now() at time zone 'UTC')::date - 1`,
  );
  // Older partitions are searched only if the last two days do not contain the whole range.
  const is_whole = recent.seen === plan.last - plan.first + 1;
  const older = is_whole ? [] : (await insertPlanned(tx, plan, tx`true`)).webhook_ids;
  await notePlanned(tx, plan);
  return [...recent.webhook_ids, ...older];
};

/**
 * If there are no webhooks, marks the whole log as planned and returns its end; otherwise returns
 * null. This function and `insertWebhook` lock the same row, so one waits for the other.
 */
export const planAllIfUnused = (sql: Sql): Promise<number | null> =>
  sql.begin(async (tx) => {
    await tx`select from delivery_plan for no key update`;
    const [passed] = await tx<{ planned_offset: number }[]>`
      update delivery_plan set planned_offset = (select "offset" from log_head)
      where not exists (select from webhooks)
      returning planned_offset`;
    if (passed === undefined) return null;
    await tx`delete from planned_ranges`;
    return passed.planned_offset;
  });

const insertPlanned = async (
  tx: Tx,
  { first, last }: Range,
  since: ReturnType<typeof isWanted>,
) => {
  const [row] = await tx<{ seen: number; webhook_ids: string[] }[]>`
    with due as materialized (
      select * from events where "offset" between ${first} and ${last} and ${since}
    ),
    planned as (
      insert into deliveries
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, expires_at,
          question_id)
      select
        w.id, e.id, delivery_id(w.id, e.id), e."offset", e.recorded_on,
        case when w.active then 'pending' else 'skipped_disabled' end, now(), ${expiry(tx)},
        ${orderKey(tx)}
      from due e
      join webhooks w on e."offset" > w.after_offset and ${isWanted(tx)}
      where not exists (
        select from planned_ranges r where e."offset" between r.first_offset and r.last_offset
      )
      on conflict (webhook_id, event_id) do nothing
      returning webhook_id, state
    )
    select
      (select count(*) from due) as seen,
      array(select distinct webhook_id from planned where state = 'pending') as webhook_ids`;
  return row ?? { seen: 0, webhook_ids: [] };
};

/** Records a planned range. Moves `planned_offset` to just before the next unplanned offset. */
const notePlanned = async (tx: Tx, { first, last }: Range): Promise<void> => {
  const noted = tx`
    insert into planned_ranges as r (first_offset, last_offset)
    values (${first}, ${last})
    on conflict (first_offset) do update
      set last_offset = greatest(r.last_offset, excluded.last_offset)`;
  const moved = tx`
    with recursive reach (upto) as (
      select planned_offset from delivery_plan
      union
      select r.last_offset
      from reach
      join planned_ranges r on r.first_offset <= reach.upto + 1 and r.last_offset > reach.upto
    ),
    moved as (
      update delivery_plan
      set planned_offset = (select max(upto) from reach)
      returning planned_offset
    )
    delete from planned_ranges r
    using moved m
    where r.last_offset <= m.planned_offset`;
  await Promise.all([noted, moved]);
};

export const readPlannedOffset = async (db: Db): Promise<number> => {
  const [row] = await db<{ planned_offset: number }[]>`select planned_offset from delivery_plan`;
  return row?.planned_offset ?? 0;
};

/** Returns the first offsets that are unplanned although their events are older than `late_ms`. */
export const findUnplanned = async (
  db: Db,
  { late_ms, most }: { readonly late_ms: number; readonly most: number },
): Promise<Range | null> => {
  const [row] = await db<{ first: number; last: number | null }[]>`
    select
      p.planned_offset + 1 as first,
      (
        select max(e."offset")
        from (
          select "offset", recorded_at
          from events
          where "offset" > p.planned_offset
          order by "offset"
          limit ${most}
        ) e
        where e.recorded_at <= now() - ${late_ms} * interval '1 millisecond'
      ) as last
    from delivery_plan p
    join log_head h on h."offset" > p.planned_offset`;
  return row === undefined || row.last === null ? null : { first: row.first, last: row.last };
};

/** Number of offsets that one step of a replay reads. */
const offsets_a_step = 500;
/**
 * A replay waits while this many deliveries of its webhook are due, so that live deliveries get
 * through.
 */
const max_due = 500;

/** Returns the active webhooks that have a running replay and few deliveries due. */
export const listReplays = async (db: Db): Promise<string[]> => {
  const rows = await db<{ webhook_id: string }[]>`
    select r.webhook_id
    from webhook_replays r
    join webhooks w on w.id = r.webhook_id
    where r.done_at is null
      and w.active
      and not exists (
        select
        from deliveries d
        where d.webhook_id = r.webhook_id and d.state in ('pending', 'waiting')
          and d.next_at <= now()
          -- Ordered deliveries after the replay's position wait for it, so they do not count.
          and (d.question_id is null or d.event_offset < r.next_offset)
        order by d.next_at
        offset ${max_due}
      )
    order by r.webhook_id`;
  return rows.map(({ webhook_id }) => webhook_id);
};

/**
 * Queues the wanted events of a replay's next offsets. Events that were delivered before are sent
 * again. Deliveries that wait for a retry are sent now. At the end, removes the gaps inside the
 * range.
 */
export const stepReplay = async (sql: Sql, webhook_id: string): Promise<void> => {
  await sql.begin(async (tx) => {
    const [replay] = await tx<{ after: number; from: number; to: number; until: number }[]>`
      select
        after_offset as after,
        next_offset as "from",
        least(until_offset, next_offset + ${offsets_a_step - 1}) as "to",
        until_offset as until
      from webhook_replays
      where webhook_id = ${webhook_id} and done_at is null
      for update skip locked`;
    if (replay === undefined) return;
    const queued = await tx`
      insert into deliveries as d
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, expires_at,
          question_id, replays)
      select
        w.id, e.id, delivery_id(w.id, e.id), e."offset", e.recorded_on, 'pending', now(),
        ${expiry(tx)}, ${orderKey(tx)}, 1
      from events e
      join webhooks w on ${isWanted(tx)}
      where w.id = ${webhook_id}
        and e."offset" between ${replay.from} and ${replay.to}
      order by e.id
      on conflict (webhook_id, event_id) do update
        set
          state = 'pending',
          attempts = 0,
          claims = 0,
          next_at = now(),
          queued_at = now(),
          question_id = excluded.question_id,
          replays = d.replays + 1,
          delivered_at = null
        where d.state not in ('pending', 'sending')`;
    const is_done = replay.to >= replay.until;
    await tx`
      update webhook_replays
      set
        next_offset = ${replay.to + 1},
        queued = queued + ${queued.count},
        done_at = case when ${is_done} then now() end
      where webhook_id = ${webhook_id}`;
    if (!is_done) return;
    await tx`
      delete from deliveries
      where webhook_id = ${webhook_id}
        and state = 'gap'
        and event_offset > ${replay.after}
        and gap_until_offset <= ${replay.until}`;
  });
};
