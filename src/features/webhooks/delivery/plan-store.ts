import type { Db, Sql } from '../../../kit/pg/client.js';
import { passesSql } from '../../events/index.js';

/** Which events become deliveries of which webhooks: by the relay's hand-off, and by replays. */

/** Whether webhook `w` asked for event `e` and may see it. */
const isWanted = (db: Db) => db`
  ${passesSql(db, {
    events: db`w.events`,
    question_ids: db`w.filter_questions`,
    categories: db`w.filter_categories`,
    model_families: db`w.filter_families`,
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
  case when e.event = 'question.closing_soon'
    then (e.body::jsonb #>> '{data,closes_at}')::timestamptz
  end`;

export interface PlanRange {
  readonly from_offset: number;
  readonly to_offset: number;
  /** Day of the hand-off, `YYYY-MM-DD`; without it that of this transaction. */
  readonly recorded_on?: string;
}

export interface Planned {
  readonly webhook_id: string;
  readonly count: number;
}

/**
 * One delivery for each event of the range and each webhook that wants it; those of a webhook that
 * is off are there to be replayed. Says how many each webhook is to be sent. Runs in the
 * transaction that hands the events over, and costs one empty lookup while there are no webhooks.
 */
export const planDeliveries = async (db: Db, range: PlanRange): Promise<readonly Planned[]> =>
  db<Planned[]>`
    with planned as (
      insert into deliveries
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, expires_at)
      select
        w.id,
        e.id,
        delivery_id(w.id, e.id),
        e."offset",
        e.recorded_on,
        case when w.active then 'pending' else 'skipped_disabled' end,
        now(),
        ${expiry(db)}
      from events e
      join webhooks w on ${isWanted(db)}
      where e.recorded_on = coalesce(
          ${range.recorded_on ?? null}::date,
          (now() at time zone 'UTC')::date
        )
        and e."offset" between ${range.from_offset} and ${range.to_offset}
        and exists (select from webhooks)
      on conflict (webhook_id, event_id) do nothing
      returning webhook_id, state
    )
    select webhook_id, count(*)::int as count
    from planned
    where state = 'pending'
    group by webhook_id`;

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
      and w.skip_before is null
      and not exists (
        select
        from deliveries d
        where d.webhook_id = r.webhook_id and d.state in ('pending', 'waiting')
          and d.next_at <= now()
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
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, expires_at, replays)
      select
        w.id, e.id, delivery_id(w.id, e.id), e."offset", e.recorded_on, 'pending', now(),
        ${expiry(tx)}, 1
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
