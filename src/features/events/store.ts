import type { Db, Sql, Tx } from '../../db/client.js';
import { ensureDays } from '../../db/partition-store.js';
import type { EventDef } from '../../kit/event.js';
import type { LogEntry } from './log-entry.js';

/** The log in Postgres: the outbox, the events, the head, and the lease of the active relay. */

export const readHead = async (db: Db): Promise<number> => {
  const [row] = await db<{ offset: number }[]>`select "offset" from log_head`;
  return row?.offset ?? 0;
};

/** Event names for `in`, as literals. With parameters, Postgres would use no partial index. */
export const eventNames = (db: Db, events: readonly EventDef[]) =>
  db.unsafe(events.map(({ name }) => `'${name}'`).join(', '));

export const entryColumns = (db: Db) => db`
  "offset", id, event, question_id, agent_id, audience_id, category, subcategory, owner_id, body`;

export const readEvents = async (db: Db, after: number, most: number) =>
  db<LogEntry[]>`
    select ${entryColumns(db)}
    from events
    where "offset" > ${after}
    order by "offset"
    limit ${most}`;

export type Lease = { readonly name: string; readonly holder: string; readonly fence: number };

/** Takes a lease that is free or has expired by the database's clock, and increases its fence. */
export const takeLease = async (
  sql: Sql,
  name: string,
  holder: string,
  seconds: number,
): Promise<Lease | undefined> => {
  const [row] = await sql<{ fence: number }[]>`
    insert into leases as l (name, holder, fence, expires_at)
    select ${name}, ${holder}, 1, now() + make_interval(secs => ${seconds})
    -- A waiting process only reads, because a conflict would lock the row of the active holder.
    where not exists (
      select from leases o where o.name = ${name} and o.holder <> ${holder} and o.expires_at >= now()
    )
    on conflict (name) do update
      set holder = excluded.holder, fence = l.fence + 1, expires_at = excluded.expires_at
      where l.expires_at < now() or l.holder = excluded.holder
    returning fence`;
  return row === undefined ? undefined : { name, holder, fence: row.fence };
};

/** Renews the lease in the transaction that it protects; false if another holder has it now. */
export const holdLease = async (tx: Tx, lease: Lease, seconds: number): Promise<boolean> => {
  const rows = await tx`
    update leases
    set expires_at = clock_timestamp() + make_interval(secs => ${seconds})
    where name = ${lease.name} and holder = ${lease.holder} and fence = ${lease.fence}
    returning name`;
  return rows.length === 1;
};

export const dropLease = async (sql: Sql, lease: Lease): Promise<void> => {
  await sql`
    update leases
    set expires_at = now() - interval '1 second'
    where name = ${lease.name} and holder = ${lease.holder} and fence = ${lease.fence}`;
};

/**
 * Settings of the hand-over transaction. Sequential scans are off. They would also read the space
 * of removed rows, which the outbox keeps until it is vacuumed. JIT is off, because before version
 * 18 Postgres adds a cost of 10,000,000,000 to a disabled scan that it still needs. Because of that
 * cost, it would compile the statement. If a relay stops in the middle, it is disconnected after a
 * second. That also ends its hold on the lease.
 */
export const hand_over_settings = {
  set: { enable_seqscan: 'off', jit: 'off', idle_in_transaction_session_timeout: 1_000 },
};

/**
 * Moves up to `most` committed events from the outbox to the log, in the order of their ids, and
 * gives each the next offset. The head row is locked, so offsets have no gaps, regardless of the
 * order of commits.
 */
export const handOver = async (tx: Tx, most: number): Promise<LogEntry[]> => {
  const rows = await moveRows(tx, most);
  return rows.sort((a, b) => a.offset - b.offset);
};

export const moveRows = (tx: Tx, most: number) => tx<LogEntry[]>`
  with taken as (
    delete from outbox
    where ctid = any (array(select ctid from outbox order by id limit ${most}))
    returning id, event, question_id, agent_id, audience_id, owner_id, body
  ),
  head as (
    update log_head
    set "offset" = "offset" + (select count(*) from taken)
    where only_row and exists (select from taken)
    returning "offset"
  ),
  numbered as (
    select
      (select "offset" from head) - count(*) over () + row_number() over (order by taken.id)
        as "offset",
      taken.*
    from taken
  )
  insert into events
    ("offset", recorded_on, recorded_at, id, event, question_id, agent_id, audience_id,
      category, subcategory, owner_id, body)
  select
    n."offset", (now() at time zone 'UTC')::date, now(), n.id, n.event, n.question_id,
    n.agent_id, n.audience_id, q.category, q.subcategory, n.owner_id, n.body
  from numbered n
  left join questions q on q.id = n.question_id
  returning ${entryColumns(tx)}`;

/**
 * Creates the partitions of today and the next days, so that no row falls into the default
 * partition.
 */
export const ensurePartitions = (sql: Sql, days_ahead: number): Promise<void> =>
  ensureDays(sql, { table: 'events', column: 'recorded_on' }, days_ahead);

/**
 * Returns how many milliseconds the oldest event has waited for the relay. The first 48 bits of its
 * id are its creation time.
 */
export const readLag = async (db: Db, now: Date): Promise<number> => {
  const [oldest] = await db<{ id: string }[]>`select id from outbox order by id limit 1`;
  if (oldest === undefined) return 0;
  const made_ms = Number.parseInt(oldest.id.replaceAll('-', '').slice(0, 12), 16);
  return Math.max(0, now.getTime() - made_ms);
};
