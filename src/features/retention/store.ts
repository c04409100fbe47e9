import type { Db } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import type { OldestStep } from '../events/index.js';
import { type ArchiveTable, setting } from '../exports/index.js';

/** Finds old data to remove and events that are still needed, and selects rows for the archive. */

/** Returns the next day of events to remove. Events from `needed_from` on are still needed. */
export const findOldEvents = async (
  db: Db,
  days_kept: number,
): Promise<(OldestStep & { readonly needed_from: number }) | null> => {
  const [row] = await db<(OldestStep & { next: number | null; needed_from: number })[]>`
    select
      to_char(e.recorded_on, 'YYYYMMDD') as day,
      h.oldest as first,
      (
        select l."offset"
        from events l
        where l."offset" > h.oldest and l.recorded_on > e.recorded_on
        order by l."offset"
        limit 1
      ) as next,
      least(
        (select "offset" + 1 from snapshot_cursor),
        (select planned_offset + 1 from delivery_plan),
        (select min(next_offset) from webhook_replays where done_at is null),
        (
          select min(event_offset)
          from deliveries
          where state in ('pending', 'waiting', 'sending')
        )
      ) as needed_from
    from log_head h
    join events e on e."offset" = h.oldest
    where e.recorded_on < (now() at time zone 'UTC')::date - ${days_kept}::integer`;
  return row === undefined || row.next === null ? null : row;
};

type Columns = Readonly<Record<string, ArchiveTable['columns'][number]['type']>>;

const tableOf = (name: string, columns: Columns): ArchiveTable => ({
  name,
  columns: Object.entries(columns).map(([name, type]) => ({ name, type })),
});

const selectOf = ({ columns }: ArchiveTable, rest: string): string => {
  const names = columns.map(({ name }) => `"${name}"`).join(', ');
  return `select row_to_json(r)::text from (select ${names} from ${rest}) r`;
};

export const event_table = tableOf('events', {
  offset: 'number',
  recorded_at: 'time',
  id: 'text',
  event: 'text',
  question_id: 'text',
  agent_id: 'text',
  audience_id: 'text',
  category: 'text',
  subcategory: 'text',
  owner_id: 'text',
  body: 'text',
});

export const eventsOf = ({ first, next }: OldestStep) => ({
  select: selectOf(
    event_table,
    `events
      where "offset" >= ${setting('first', 'bigint')} and "offset" < ${setting('next', 'bigint')}
      order by "offset"`,
  ),
  settings: { first: String(first), next: String(next) },
});

export const attempt_table = tableOf('attempts', {
  webhook_id: 'text',
  event_id: 'text',
  attempt: 'integer',
  at: 'time',
  latency_ms: 'integer',
  status: 'integer',
  error: 'text',
  answer: 'text',
});

/** Selects all rows of one day's partition. */
export const attemptsOf = (day: string) => {
  if (!/^[0-9]{8}$/.test(day)) throw new Error(`attempts: ${day} is not a day`);
  return { select: selectOf(attempt_table, `attempts_${day} order by at`), settings: {} };
};

export const countRows = (tx: Db, partition: string) =>
  readTotal(tx<{ total: number }[]>`select count(*)::integer as total from ${tx(partition)}`);

export const snapshot_table = tableOf('snapshots', {
  question_id: 'text',
  moment: 'time',
  taken_at: 'time',
  offset: 'number',
  consensus: 'json',
});

/** Selects hourly snapshots by their keys. */
export const snapshotsOf = (keys: readonly object[]) => ({
  select: selectOf(
    snapshot_table,
    `consensus_snapshots
      join json_to_recordset(${setting('keys', 'json')}) k (question_id uuid, moment timestamptz)
        using (question_id, moment)
      where reason = 'hourly'
      order by moment, question_id`,
  ),
  settings: { keys: JSON.stringify(keys) },
});
