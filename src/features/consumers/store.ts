import type { Db, Fragment, Sql, Tx } from '../../db/client.js';
import { firstRow, readTotal } from '../../db/rows.js';
import { makeId } from '../../kit/ids.js';
import type { FilterMembers } from '../events/filter.js';
import type { LogEntry } from '../events/log-entry.js';
import { consumer_limit, type Start } from './schema.js';

/**
 * Consumers in Postgres. Every change of a consumer or of its events locks the consumer's row, so
 * takes and acknowledgements of one consumer run one after the other.
 */

export type Owner = { readonly kind: 'agent' | 'human'; readonly id: string };

/** Identifies a consumer by its owner and its name. */
export interface ConsumerKey {
  readonly owner: Owner;
  readonly name: string;
}

export interface Gap {
  readonly after: number;
  readonly until: number;
}

export interface Consumer {
  readonly id: string;
  readonly name: string;
  readonly topics: readonly string[];
  /** The filter as `readFilter` returns it in `shown`. */
  readonly filter: FilterMembers | null;
  readonly ack_wait_seconds: number;
  /** An event is parked after this many failed deliveries; null if events are never parked. */
  readonly max_deliveries: number | null;
  /** All events up to this offset were checked. */
  readonly cursor: number;
  readonly gap: (Gap & { readonly at: Date }) | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const columns = (db: Db) => db`
  c.id, c.name, c.topics, c.filter, c.ack_wait_seconds, c.max_deliveries, c."cursor",
  case
    when c.gap_at is not null
      then json_build_object('after', c.gap_after, 'until', c.gap_until, 'at', c.gap_at)
  end as gap,
  c.created_at, c.updated_at`;

const named = (db: Db, { owner, name }: ConsumerKey) =>
  db`c.owner_id = ${owner.id} and c.name = ${name}`;

const startSql = (db: Db, start: Start) => {
  if (start === 'now') return db`(select "offset" from log_head)`;
  return start === 'beginning' ? db`(select oldest - 1 from log_head)` : db`${start}::bigint`;
};

type Wish = Pick<Consumer, 'topics' | 'filter' | 'ack_wait_seconds' | 'max_deliveries'> & {
  readonly start: Start;
};

const owner_lock = 7_366_145;

/** Creates a consumer, or changes one without moving its cursor; null if its owner has too many. */
export const putConsumer = async (tx: Tx, { owner, name }: ConsumerKey, wish: Wish) => {
  const { topics, filter, ack_wait_seconds, max_deliveries, start } = wish;
  await tx`select pg_advisory_xact_lock(${owner_lock}, hashtext(${owner.id}))`;
  const [row] = await tx<(Consumer & { readonly is_new: boolean })[]>`
    with others as (
      select name from consumers where owner_id = ${owner.id} and name <> ${name}
    )
    insert into consumers as c
      (id, agent_id, human_id, name, topics, filter, ack_wait_seconds, max_deliveries, "cursor")
    select
      ${makeId()}, ${owner.kind === 'agent' ? owner.id : null}::uuid,
      ${owner.kind === 'human' ? owner.id : null}::uuid, ${name}, ${topics as string[]}::text[],
      ${filter && JSON.stringify(filter)}::text::json, ${ack_wait_seconds},
      ${max_deliveries}::smallint, ${startSql(tx, start)}
    where (select count(*) from others) < ${consumer_limit}
    on conflict (owner_id, name) do update
      set topics = excluded.topics, filter = excluded.filter,
        ack_wait_seconds = excluded.ack_wait_seconds,
        max_deliveries = excluded.max_deliveries, updated_at = now()
    returning ${columns(tx)}, xmax = 0 as is_new`;
  return row ?? null;
};

export const listConsumers = (db: Db, owner: Owner) => db<Consumer[]>`
  select ${columns(db)} from consumers c where owner_id = ${owner.id} order by c.name`;

export const findConsumer = (db: Db, key: ConsumerKey) =>
  firstRow(db<Consumer[]>`select ${columns(db)} from consumers c where ${named(db, key)}`);

export const deleteConsumer = async (db: Db, key: ConsumerKey): Promise<boolean> =>
  (await db`delete from consumers c where ${named(db, key)} returning c.id`).length > 0;

/** Moves the cursor, and drops all events that were offered but not yet acknowledged. */
export const seekConsumer = async (tx: Tx, key: ConsumerKey, start: Start) => {
  const consumer = await firstRow(tx<Consumer[]>`
    update consumers c
    set "cursor" = ${startSql(tx, start)}, gap_after = null, gap_until = null, gap_at = null,
      updated_at = now()
    where ${named(tx, key)}
    returning ${columns(tx)}`);
  if (consumer !== undefined) {
    await tx`delete from consumer_events where consumer_id = ${consumer.id}`;
  }
  return consumer;
};

interface LockedConsumer extends Consumer {
  readonly head: number;
  readonly oldest: number;
}

export const lockConsumer = (tx: Tx, key: ConsumerKey) =>
  firstRow(tx<LockedConsumer[]>`
    select ${columns(tx)}, h."offset" as head, h.oldest
    from consumers c, log_head h
    where ${named(tx, key)}
    for update of c`);

/** Saves the position of a consumer. `gap` is a range of events that were deleted unread. */
export const storeProgress = (tx: Tx, id: string, cursor: number, gap: Gap | null) => tx`
  update consumers
  set "cursor" = ${cursor},
    gap_after = coalesce(${gap?.after ?? null}::bigint, gap_after),
    gap_until = coalesce(${gap?.until ?? null}::bigint, gap_until),
    gap_at = case when ${gap !== null} then now() else gap_at end
  where id = ${id}`;

export interface Held {
  readonly unacknowledged: number;
  /** How many of the unacknowledged events are parked. */
  readonly parked: number;
  /** How many of the unacknowledged events this connection holds. */
  readonly held: number;
}

export const countHeld = async (db: Db, id: string, connection: string): Promise<Held> => {
  const [row] = await db<Held[]>`
    select count(*)::integer as unacknowledged,
      (count(*) filter (where parked_at is not null))::integer as parked,
      (count(*) filter (where connection = ${connection} and leased_until > now()))::integer as held
    from consumer_events
    where consumer_id = ${id}`;
  return row ?? { unacknowledged: 0, parked: 0, held: 0 };
};

export const addEvents = async (
  tx: Tx,
  id: string,
  entries: readonly Pick<LogEntry, 'offset' | 'question_id' | 'id'>[],
): Promise<void> => {
  const rows = entries.map((one) => ({ offset: one.offset, key: one.question_id ?? one.id }));
  await tx`
    insert into consumer_events (consumer_id, "offset", order_key)
    select ${id}, e."offset", e.key
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as e ("offset" bigint, key uuid)`;
};

export interface Delivery extends Pick<LogEntry, 'offset'> {
  readonly deliveries: number;
  readonly leased_until: Date;
  /** Null if the event is no longer stored. */
  readonly id: string | null;
  readonly body: string | null;
}

/**
 * A lost connection says little about an event, so it counts as this fraction of a failed delivery.
 */
const lost_connection = 0.1;

/** SQL: the pause after a failed delivery: 1 s at first, doubled each time, up to ten minutes. */
const rest = (db: Db, vain: Fragment) =>
  db`make_interval(secs => least(600, power(2, greatest(0, floor(${vain}) - 1))))`;

/**
 * Counts expired leases as failed deliveries, and parks events with too many failed deliveries. A
 * member processes the events of a question in order, so only the first one counts as tried. The
 * later events are just freed.
 */
const countEndedLeases = (tx: Tx, id: string, max_deliveries: number) => tx`
  update consumer_events e
  set connection = null, vain = one.vain,
    member = case when one.vain < ${max_deliveries} then e.member end,
    parked_at = case when one.vain >= ${max_deliveries} then now() end,
    leased_until = case when one.is_first then leased_until + ${rest(tx, tx`one.vain`)} else leased_until end
  from (
    select "offset", is_first, vain + is_first::integer as vain
    from (${withFirst(tx, id)}) waiting
  ) one
  where e.consumer_id = ${id} and e."offset" = one."offset"
    and e.connection is not null and e.leased_until <= now()`;

/** SQL: the events that are not parked, and whether each is the first of its question. */
const withFirst = (db: Db, id: string) => db`
  select "offset", vain, "offset" = min("offset") over (partition by order_key) as is_first
  from consumer_events
  where consumer_id = ${id} and parked_at is null`;

interface Leasing {
  readonly member: string;
  readonly connection: string;
  readonly limit: number;
}

/**
 * Leases events to a member. Events of questions that the member had before come first, then the
 * oldest other events. Skips questions that have leased events.
 */
export const leaseEvents = async (
  tx: Tx,
  { id, ack_wait_seconds, max_deliveries }: Consumer,
  { member, connection, limit }: Leasing,
): Promise<readonly Delivery[]> => {
  if (max_deliveries !== null) await countEndedLeases(tx, id, max_deliveries);
  return tx<Delivery[]>`
  with busy as materialized (
    select order_key from consumer_events
    where consumer_id = ${id} and leased_until > now() and parked_at is null
  ),
  free as (
    select "offset"
    from (
      -- The member of the first event decides for all events of a question, to keep their order.
      select "offset", first_value(member) over (partition by order_key order by "offset") as first
      from consumer_events
      where consumer_id = ${id} and parked_at is null
        and order_key not in (select order_key from busy)
    ) waiting
    order by coalesce(first = ${member}, false) desc, "offset"
    limit ${limit}
  ),
  leased as (
    update consumer_events c
    set member = ${member}, connection = ${connection}, deliveries = deliveries + 1,
      leased_until = now() + make_interval(secs => ${ack_wait_seconds})
    from free
    where c.consumer_id = ${id} and c."offset" = free."offset"
    returning c."offset", c.deliveries, c.leased_until
  )
  select leased.*, e.id, e.body
  from leased left join events e on e."offset" = leased."offset"
  order by leased."offset"`;
};

/** Frees the unacknowledged events of a connection; returns whether there were any. */
export const releaseConnection = async (
  tx: Tx,
  { id, max_deliveries }: Pick<Consumer, 'id' | 'max_deliveries'>,
  connection: string,
): Promise<boolean> => {
  const { count } = await tx`
    update consumer_events e
    set leased_until = now(), connection = null, vain = one.vain,
      parked_at = case when one.vain >= ${max_deliveries}::smallint then now() end
    from (
      select "offset", vain + is_first::integer * ${lost_connection}::numeric as vain
      from (${withFirst(tx, id)}) waiting
    ) one
    where e.consumer_id = ${id} and e."offset" = one."offset" and e.connection = ${connection}`;
  return count > 0;
};

/** Extends leases that are still valid; returns their offsets. */
export const extendLeases = async (
  tx: Tx,
  id: string,
  { member, offsets, seconds }: Claimed & { readonly seconds: number },
): Promise<readonly number[]> => {
  const rows = await tx<{ offset: number }[]>`
    update consumer_events
    set leased_until = greatest(leased_until, now() + make_interval(secs => ${seconds}))
    where consumer_id = ${id} and member = ${member} and leased_until > now()
      and connection is not null and parked_at is null
      and "offset" = any (${offsets as number[]}::bigint[])
    returning "offset"`;
  return rows.map(({ offset }) => offset);
};

export interface Parked extends Pick<LogEntry, 'offset'> {
  readonly deliveries: number;
  readonly parked_at: Date;
  /** Null if the event is no longer stored. */
  readonly id: string | null;
  readonly body: string | null;
}

/** Lists the parked events after an offset, in the order of the log. */
export const listParked = (
  db: Db,
  id: string,
  { after, limit }: { readonly after: number; readonly limit: number },
) => db<Parked[]>`
  select c."offset", c.deliveries, c.parked_at, e.id, e.body
  from consumer_events c
  left join events e on e."offset" = c."offset"
  where c.consumer_id = ${id} and c.parked_at is not null and c."offset" > ${after}
  order by c."offset"
  limit ${limit}`;

/** Makes parked events available again, as if never delivered; returns their offsets. */
export const requeueParked = async (
  tx: Tx,
  id: string,
  offsets: readonly number[],
): Promise<readonly number[]> => {
  const rows = await tx<{ offset: number }[]>`
    update consumer_events
    set parked_at = null, deliveries = 0, vain = 0, leased_until = null
    where consumer_id = ${id} and parked_at is not null
      and "offset" = any (${offsets as number[]}::bigint[])
    returning "offset"`;
  return rows.map(({ offset }) => offset);
};

/** Deletes parked events for good; returns their offsets. */
export const dropParked = async (
  tx: Tx,
  id: string,
  offsets: readonly number[],
): Promise<readonly number[]> => {
  const rows = await tx<{ offset: number }[]>`
    delete from consumer_events
    where consumer_id = ${id} and parked_at is not null
      and "offset" = any (${offsets as number[]}::bigint[])
    returning "offset"`;
  return rows.map(({ offset }) => offset);
};

export const dropEvents = (tx: Tx, id: string, offsets: readonly number[]) => tx`
  delete from consumer_events
  where consumer_id = ${id} and "offset" = any (${offsets as number[]}::bigint[])`;

/** Events that a member claims to hold. */
export interface Claimed {
  readonly member: string;
  readonly offsets: readonly number[];
}

/** An acknowledgement: the member has processed these events. */
export interface Ack extends ConsumerKey, Claimed {}

/**
 * Deletes the acknowledged events. For each acknowledgement, returns whether the consumer exists,
 * and the offsets that the member held.
 */
export const acknowledgeAll = async (tx: Tx, acks: readonly Ack[]) => {
  const named_rows = acks.map(({ owner, name }, n) => ({ n, owner_id: owner.id, name }));
  const consumers = await tx<{ n: number; id: string }[]>`
    select a.n, c.id
    from json_to_recordset(${JSON.stringify(named_rows)}::text::json)
      as a (n integer, owner_id uuid, name text)
    join consumers c on c.owner_id = a.owner_id and c.name = a.name
    where c.owner_id = any (${acks.map(({ owner }) => owner.id)}::uuid[])
    order by c.id
    for update of c`;
  const ids = new Map(consumers.map(({ n, id }) => [n, id]));
  const rows = acks.flatMap(({ member, offsets }, n) =>
    offsets.map((offset) => ({ n, id: ids.get(n), member, offset })),
  );
  const done = await tx<{ n: number; offset: number }[]>`
    delete from consumer_events e
    using json_to_recordset(${JSON.stringify(rows)}::text::json)
      as a (n integer, id uuid, member text, "offset" bigint)
    where e.consumer_id = a.id and e."offset" = a."offset" and e.member = a.member
    returning a.n, e."offset"`;
  return acks.map((_, n) => ({
    is_known: ids.has(n),
    offsets: done.filter((one) => one.n === n).map(({ offset }) => offset),
  }));
};

export interface Release {
  /** Null for the usual delay of the consumer. */
  readonly delay_seconds: number | null;
  /** False if the member did not start to process the events. */
  readonly is_tried: boolean;
}

/**
 * Gives events back. To keep the order, the member's later events of the same questions go back
 * too.
 */
export const releaseEvents = async (
  tx: Tx,
  { id, max_deliveries }: Pick<Consumer, 'id' | 'max_deliveries'>,
  { member, offsets, delay_seconds, is_tried }: Claimed & Release,
): Promise<readonly number[]> => {
  const is_named = tx`e."offset" = any (${offsets as number[]}::bigint[])`;
  const vain = tx`(e.vain + (${is_tried} and ${is_named})::integer)`;
  const usual_rest = max_deliveries === null || !is_tried ? tx`interval '0'` : rest(tx, vain);
  const delay = delay_seconds === null ? usual_rest : tx`make_interval(secs => ${delay_seconds})`;
  const rows = await tx<{ offset: number }[]>`
    with given as (
      select e.order_key, min(e."offset") as "offset"
      from consumer_events e
      where e.consumer_id = ${id} and e.member = ${member} and ${is_named}
      group by e.order_key
    )
    update consumer_events e
    set member = null, connection = null, vain = ${vain},
      parked_at = case when ${vain} >= ${max_deliveries}::smallint then now() end,
      leased_until = now() + case when ${is_named} then ${delay} else interval '0' end
    from given
    where e.consumer_id = ${id} and e.member = ${member} and e.parked_at is null
      and e.order_key = given.order_key
      and e."offset" >= given."offset"
    returning e."offset"`;
  return rows.map(({ offset }) => offset);
};

interface State {
  /**
   * Offset of the oldest unacknowledged event that is not parked; null if there is no such event.
   */
  readonly oldest: number | null;
  readonly unacknowledged: number;
  readonly parked: number;
  readonly members: readonly { readonly member: string; readonly in_flight: number }[];
  readonly head: number;
}

export const readState = async (db: Db, id: string): Promise<State> => {
  const [row] = await db<State[]>`
    with waiting as (
      select "offset", parked_at, 
        case when connection is not null and leased_until > now() then member end as member
      from consumer_events
      where consumer_id = ${id}
    ),
    members as (
      select member, count(*)::integer as in_flight
      from waiting
      where member is not null
      group by member
    )
    select
      (select min("offset") from waiting where parked_at is null) as oldest,
      (select count(*)::integer from waiting) as unacknowledged,
      (select count(*)::integer from waiting where parked_at is not null) as parked,
      coalesce((select json_agg(m order by member) from members m), '[]'::json) as members,
      h."offset" as head
    from log_head h`;
  return row ?? { oldest: null, unacknowledged: 0, parked: 0, members: [], head: 0 };
};

/** For operators: returns how many offsets the slowest consumer is behind the head. */
export const readMostBehind = (sql: Sql) =>
  readTotal(sql<{ total: number }[]>`
    select coalesce(max(h."offset" - least(c."cursor", first."offset" - 1)), 0)::bigint as total
    from consumers c
    cross join log_head h
    left join lateral (
      select min("offset") as "offset" from consumer_events
      where consumer_id = c.id and parked_at is null
    ) first on true`);

/**
 * For operators: returns the age in seconds of the oldest event that was offered but not yet
 * acknowledged.
 */
export const readOldestSeconds = (sql: Sql) =>
  readTotal(sql<{ total: number }[]>`
    select coalesce(max(extract(epoch from now() - e.recorded_at)), 0)::float8 as total
    from (
      select min("offset") as "offset" from consumer_events
      where parked_at is null group by consumer_id
    ) first
    join events e on e."offset" = first."offset"`);
