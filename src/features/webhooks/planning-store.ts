import type { Db, Sql, Tx } from '../../db/client.js';
import { question_closing_soon } from '../events/catalogue.js';
import { passesSql } from '../events/index.js';
import { orderKey } from './sending-store.js';

/**
 * Which events become deliveries of which webhooks: by the signers, and by replays.
 *
 * For each offset up to `planned_offset` every wanted delivery has its row, and `planned_ranges`
 * says what is planned beyond it. An offset is planned once: a portion of the log that is read
 * again, after its reader died or by a reader that slept, finds itself planned and adds nothing.
 */
/** Whether webhook `w` asked for event `e` and may see it. */
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

/** After this a delivery of event `e` would come too late to be of use. */
const expiry = (db: Db) => db`
  case when e.event = ${question_closing_soon.name}
    then (e.body::jsonb #>> '{data,closes_at}')::timestamptz
  end`;

export type Range = { readonly first: number; readonly last: number };

/**
 * Plans a range of offsets: one delivery for each event of it that was not planned before and each
 * webhook that wants it; the ids of webhooks with something to be sent. Deliveries of a webhook
 * that is off are there to be replayed.
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
  // Partitions before yesterday's are looked into only where the range begins in them.
  const is_whole = recent.seen === plan.last - plan.first + 1;
  const older = is_whole ? [] : (await insertPlanned(tx, plan, tx`true`)).webhook_ids;
  await notePlanned(tx, plan);
  return [...recent.webhook_ids, ...older];
};

/**
 * Where nobody has a webhook: takes all of the log for planned, and returns its end; else null. A
 * webhook that is being made waits for it, or it for the webhook (`insertWebhook`).
 */
export const scorePeers = (sql: Sql): Promise<number | null> =>
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

/** Moves `planned_offset` over all ranges that touch it. */
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

/** The first offsets that are not planned although their events are so old. */
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

/** Offsets that one step of a replay looks at. */
const offsets_a_step = 500;
/** A replay waits while this many deliveries of its webhook are due, so that live ones get by. */
const most_due = 500;

/** Replays that go on, of webhooks that are on and have little to do. */
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
          -- Those with an order and after this place wait for the replay.
          and (d.question_id is null or d.event_offset < r.next_offset)
        order by d.next_at
        offset ${most_due}
      )
    order by r.webhook_id`;
  return rows.map(({ webhook_id }) => webhook_id);
};

/**
 * Puts the wanted events of the next offsets of a replay into the queue, those too that have their
 * delivery already, unless it is under way. At the end, gaps inside the range are closed.
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
        where d.state not in ('pending', 'sending', 'waiting')`;
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
