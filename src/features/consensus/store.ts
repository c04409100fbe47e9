import { type Db, type Fragment, readPages, type Tx } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { makePause } from '../../kit/loop.js';
import {
  prediction_placed,
  prediction_revised,
  question_closed,
  question_resolved,
} from '../events/catalogue.js';
import { eventNames } from '../events/index.js';
import type { LogEntry } from '../events/log-entry.js';
import type { QuestionRow } from '../questions/index.js';
import { givenByCdf, isNumber } from './numbers.js';
import {
  type Consensus,
  givenBy,
  no_tally,
  type Position,
  type QuestionShape,
  type Tally,
} from './rules.js';
import type { TimedForecast } from './run.js';
import type { Mover, SnapshotReason } from './schema.js';
import { type Counted, type Counter, makeCounter, readCells, sumUpInTurns } from './tally.js';

/** Tallies, histories and snapshots of the consensus in Postgres. */

/** Rows read at a time. For a number, a row has some 400 figures, or 800 for a revision. */
const portion = { usual: 100, of_number: 20 } as const;
/** Forecasts counted in one turn of the event loop. */
const counted_a_turn = 200;

interface CountRow extends Omit<Position, 'family'> {
  readonly question_id: string;
  readonly options: number;
  readonly last_offset: number;
  /** Null if the question has no predictions. */
  readonly family: string | null;
  readonly probabilities: readonly number[] | null;
  readonly cdf: readonly number[] | null;
  readonly owners: string;
  readonly latest: Date | null;
}

/**
 * Selects which forecasts count: all that are in the log now (null), all before an offset of the
 * log, or all that were made up to a time.
 */
type Until = { readonly before: number } | { readonly at: Date } | null;

const isLogged = (db: Db, event_id: Fragment) =>
  db`not exists (select from outbox o where o.id = ${event_id})`;

/**
 * Selects the latest forecast that counts for each prediction on some questions. If `until` is
 * null, that is the forecast in `predictions`, unless its event is still in the outbox.
 */
const standing = (db: Db, question_ids: readonly string[], until: Until) => {
  const ids = db`${question_ids as string[]}::uuid[]`;
  const said = db`prediction, probability, confidence, selected_option, probabilities, cdf`;
  const columns = db`question_id, agent_id, owner_id, model_family, ${said}`;
  const latestWhere = (condition: Fragment) => db`
    select distinct on (question_id, agent_id) ${columns}, forecast_at
    from forecasts f
    where f.question_id = any (${ids}) and ${condition}
    order by question_id, agent_id, revision desc`;
  if (until === null) {
    return db`
      select ${columns}, coalesce(revised_at, created_at) as forecast_at
      from predictions p
      where p.question_id = any (${ids})
        and ${isLogged(db, db`coalesce(p.revision_event_id, p.event_id)`)}
      union all (${latestWhere(db`
        ${isLogged(db, db`f.event_id`)}
        and (f.question_id, f.agent_id) in (
          select p.question_id, p.agent_id
          from predictions p
          join outbox o on o.id = p.revision_event_id
          where p.question_id = any (${ids})
        )`)})`;
  }
  return 'at' in until
    ? latestWhere(db`f.forecast_at <= ${until.at} and ${isLogged(db, db`f.event_id`)}`)
    : latestWhere(db`
        ${isLogged(db, db`f.event_id`)}
        and f.event_id not in (
          select id from events ${isForecastOn(db, ids)} and "offset" >= ${until.before}
        )`);
};

const isForecastOn = (db: Db, ids: Fragment) => db`
  where question_id = any (${ids})
    and event in (${eventNames(db, [prediction_placed, prediction_revised])})`;

/**
 * Counts the latest forecasts on some questions. One statement reads predictions, outbox and
 * counters, so they are in the same state. The offset belongs to the newest counted forecast; it is
 * 0 if `until` is a time. If that forecast's event was deleted, the offset is lower than the oldest
 * in the log. Equal forecasts share a row, with their owners in one text, because separate rows
 * cost several times as much. Distributions are not compared, because that would take too long.
 */
export const readCounts = async (
  db: Tx,
  question_ids: readonly string[],
  until: Until = null,
): Promise<readonly Counted[]> => {
  const lastOffset =
    until === null || 'at' in until
      ? db`coalesce(max(c.prediction_offset), 0)`
      : db`(
          select coalesce(
            max("offset"),
            (select least(max(c.prediction_offset), oldest - 1) from log_head),
            0
          )
          from events
          ${isForecastOn(db, db`array[q.id]`)} and "offset" < ${until.before}
        )`;
  const rows = db<CountRow[]>`
    select
      q.id as question_id,
      cardinality(q.options) as options,
      ${lastOffset} as last_offset,
      p.model_family as family,
      p.prediction as yes,
      case when p.cdf is null then p.selected_option else 0 end as option,
      coalesce(p.probability, p.confidence) as value,
      p.probabilities,
      min(p.cdf) as cdf,
      string_agg(coalesce(p.owner_id, p.agent_id)::text, ' ') as owners,
      max(p.forecast_at) as latest
    from questions q
    left join question_counts c on c.question_id = q.id
    left join (${standing(db, question_ids, until)}) p on p.question_id = q.id
    where q.id = any (${question_ids as string[]}::uuid[])
    group by q.id, 4, 5, 6, 7, 8, case when p.cdf is not null then p.agent_id end`;
  const pause = makePause(counted_a_turn);
  const found = new Map<string, { counter: Counter; latest_ms: number | null; offset: number }>();
  for await (const page of readPages<CountRow>(db, rows, portion.of_number)) {
    for (const row of page) {
      const { question_id, family, yes, option, value, probabilities, cdf, options } = row;
      const known = found.get(question_id);
      const one = known ?? { counter: makeCounter(), latest_ms: null, offset: row.last_offset };
      found.set(question_id, one);
      if (family === null) continue;
      one.latest_ms = Math.max(one.latest_ms ?? 0, row.latest?.getTime() ?? 0);
      const given = givenBy({ option, value, cdf }, probabilities, options);
      for (const owner of row.owners.split(' ')) {
        one.counter.add({ family, yes, option, value, owner, given });
        await pause();
      }
    }
  }
  const counted: Counted[] = [];
  for (const [question_id, { counter, latest_ms, offset }] of found) {
    const has_offset = latest_ms !== null && (until === null || 'before' in until);
    counted.push({
      question_id,
      ...(await sumUpInTurns(counter, pause)),
      offset: has_offset ? offset : 0,
      updated_at: latest_ms === null ? null : new Date(latest_ms).toISOString(),
    });
  }
  return counted;
};

/** Reads the tally of the forecasts that count from Postgres. */
export const readTallyUntil = async (tx: Tx, question_id: string, until: Until): Promise<Tally> => {
  const [counted] = await readCounts(tx, [question_id], until);
  return counted === undefined ? no_tally : readCells(counted.cells, counted);
};

/** Reads the tally from Postgres; with `before`, as it was before that offset of the log. */
export const readTally = async (
  tx: Tx,
  question_id: string,
  before: number | null = null,
): Promise<Tally> => {
  // Usually there are no forecasts after that offset, so the log need not be searched.
  const now = await readTallyUntil(tx, question_id, null);
  return before === null || now.offset < before ? now : readTallyUntil(tx, question_id, { before });
};

/** Skips drafts and unknown ids. */
export const readShapes = (db: Db, ids: readonly string[]) => db<
  (EndedShape & Pick<QuestionRow, 'status'>)[]
>`
  select ${shapeColumns(db)}, q.status
  from questions q
  where q.id = any (${ids as string[]}::uuid[]) and q.status <> 'draft'`;

export const listPredicted = async (db: Db, after: string, most: number) =>
  db<{ id: string }[]>`
    select question_id as id
    from question_counts
    where prediction_count > 0 and question_id > ${after}
    order by question_id
    limit ${most}`;

/** Returns the owner that each agent had when it predicted, by question and agent. */
export const readOwners = async (
  db: Db,
  predictions: readonly Pick<LogEntry, 'question_id' | 'agent_id'>[],
): Promise<ReadonlyMap<string, string>> => {
  if (predictions.length === 0) return new Map();
  const rows = await db<{ question_id: string; agent_id: string; owner: string }[]>`
    select question_id, agent_id, coalesce(owner_id, agent_id) as owner
    from predictions
    join unnest(
      ${predictions.map(({ question_id }) => question_id)}::uuid[],
      ${predictions.map(({ agent_id }) => agent_id)}::uuid[]
    ) as wanted (question_id, agent_id) using (question_id, agent_id)`;
  return new Map(rows.map((row) => [`${row.question_id} ${row.agent_id}`, row.owner]));
};

export const readOptions = async (
  db: Db,
  question_ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> => {
  const rows = await db<{ id: string; options: string[] }[]>`
    select id, options from questions where id = any (${question_ids as string[]}::uuid[])`;
  return new Map(rows.map(({ id, options }) => [id, options]));
};

/** Returns the offset of the newest forecast on a question; 0 without forecasts. */
export const readLastOffset = async (tx: Tx, question_id: string): Promise<number> => {
  const [row] = await tx<{ offset: number }[]>`
    select prediction_offset as "offset" from question_counts where question_id = ${question_id}`;
  return row?.offset ?? 0;
};

interface ForecastRow extends Omit<TimedForecast, 'given' | 'replaced'> {
  readonly probabilities: readonly number[] | null;
  readonly cdf: readonly number[] | null;
  readonly replaced_cdf: readonly number[] | null;
}

/**
 * Reads all forecasts on a question in order of time. Like the consensus, it skips forecasts whose
 * event is still in the outbox, and includes hidden predictions and voided questions. Only a
 * portion of the forecasts is in memory at a time.
 */
export async function* readForecasts(
  tx: Tx,
  question: QuestionShape,
  family?: string,
): AsyncGenerator<TimedForecast> {
  const { id, question_type, options } = question;
  const before = tx`lag(f.cdf) over (partition by f.agent_id order by f.forecast_at, f.revision)`;
  const rows = tx<ForecastRow[]>`
    select
      (extract(epoch from f.forecast_at) * 1000)::bigint as at,
      coalesce(f.selected_option, f.prediction::integer, 0) as side,
      coalesce(f.probability, f.confidence) as value,
      f.agent_id as agent,
      coalesce(f.owner_id, f.agent_id) as owner,
      f.model_family as family,
      f.probabilities,
      f.cdf,
      ${isNumber(question) ? before : tx`null`} as replaced_cdf
    from forecasts f
    where f.question_id = ${id} and ${isLogged(tx, tx`f.event_id`)}
      ${family === undefined ? tx`` : tx`and f.model_family = ${family}`}
    order by f.forecast_at, f.prediction_id, f.revision`;
  const most = isNumber(question) ? portion.of_number : portion.usual;
  for await (const page of readPages<ForecastRow>(tx, rows, most)) {
    for (const { probabilities, cdf, replaced_cdf, ...one } of page) {
      const option = question_type === 'binary' ? null : one.side;
      const said = { option, value: one.value, cdf };
      const given = givenBy(said, probabilities, options.length) ?? [];
      yield { ...one, given, replaced: replaced_cdf && givenByCdf(replaced_cdf) };
    }
  }
}

/** Returns the offset up to which the log was searched; undefined if another timer has the lock. */
export const lockCursor = async (tx: Tx): Promise<number | undefined> => {
  const [row] = await tx<{ offset: number }[]>`
    select "offset" from snapshot_cursor for update skip locked`;
  return row?.offset;
};

export const moveCursor = async (tx: Tx, offset: number): Promise<void> => {
  await tx`update snapshot_cursor set "offset" = ${offset}`;
};

/** `ended_at` is when the question stopped taking forecasts; null while it takes them. */
export type EndedShape = QuestionShape & { readonly ended_at: Date | null };

const shapeColumns = (db: Db) =>
  db`q.id, q.question_type, q.options, q.range_min, q.range_max, coalesce(q.closed_at, q.voided_at) as ended_at`;

/** A close or a resolution in the log, with the question as it is now. */
export interface Ending extends EndedShape {
  readonly offset: number;
  readonly reason: 'closed' | 'resolved';
  readonly moment: Date;
}

export const readEndings = (
  tx: Tx,
  { after, until, most }: { readonly after: number; readonly until: number; readonly most: number },
) => tx<Ending[]>`
  select e.*, ${shapeColumns(tx)}
  from (
    select
      "offset",
      question_id,
      split_part(event, '.', 2) as reason,
      coalesce(
        body::json -> 'data' ->> 'resolved_at',
        body::json -> 'data' ->> 'closed_at'
      )::timestamptz as moment
    from events
    where "offset" > ${after}
      and "offset" <= ${until}
      and event in (${eventNames(tx, [question_closed, question_resolved])})
  ) e
  join questions q on q.id = e.question_id
  order by e."offset"
  limit ${most}`;

/** A stretch of the log, up to and including `until`. */
export interface Stretch {
  readonly after: number;
  readonly until: number;
}

/**
 * Lists questions with forecasts in the log that were made over an hour before they were recorded,
 * which means that they were imported.
 */
export const listImported = (tx: Tx, { after, until }: Stretch) => tx<EndedShape[]>`
  select distinct ${shapeColumns(tx)}
  from events e
  join questions q on q.id = e.question_id
  where e."offset" > ${after}
    and e."offset" <= ${until}
    and e.event in (${eventNames(tx, [prediction_placed, prediction_revised])})
    and q.source is not null
    and (e.body::json ->> 'timestamp')::timestamptz < e.recorded_at - interval '1 hour'
  order by q.id`;

/**
 * Lists how many whole days before `end` the forecasts on a question were made, the most first. More
 * than `most` days count as `most`. Leaves out the last day.
 */
export const listForecastDays = async (
  tx: Tx,
  question_id: string,
  { end, most }: { readonly end: Date; readonly most: number },
): Promise<readonly number[]> => {
  const rows = await tx<{ days: number }[]>`
    select distinct
      least(${most}, floor(extract(epoch from ${end} - forecast_at) / 86400))::integer as days
    from forecasts
    where question_id = ${question_id} and forecast_at <= ${end}::timestamptz - interval '1 day'
    order by days desc`;
  return rows.map(({ days }) => days);
};

/** Deletes the snapshots that were made for imported forecasts. Only these have the offset 0. */
export const deletePast = async (tx: Tx, question_id: string): Promise<void> => {
  await tx`
    delete from consensus_snapshots
    where question_id = ${question_id} and reason = 'hourly' and "offset" = 0`;
};

/** Lists, by id, questions that moved after their latest snapshot and lack one for this hour. */
export const listMoved = (
  tx: Tx,
  { hour, after, most }: { readonly hour: Date; readonly after: string; readonly most: number },
) => tx<EndedShape[]>`
  select ${shapeColumns(tx)}
  from question_counts c
  join questions q on q.id = c.question_id
  where c.question_id > ${after}
    and c.prediction_count > 0
    and not exists (
      select
      from consensus_snapshots s
      where s.question_id = c.question_id
        and (s."offset" >= c.prediction_offset or s.moment = ${hour} and s.reason = 'hourly')
    )
  order by c.question_id
  limit ${most}`;

export interface Snapshot {
  readonly reason: SnapshotReason;
  readonly moment: Date;
  readonly taken_at: Date;
}

/** Format of a snapshot's JSON. The index of older snapshots, in `sql/`, has the same number. */
const format = 3;

/** Returns false if the moment already has its snapshot. An older format is overwritten. */
export const putSnapshot = async (
  tx: Tx,
  { reason, moment, taken_at }: Snapshot,
  consensus: Consensus,
): Promise<boolean> => {
  const rows = await tx`
    insert into consensus_snapshots as s
      (question_id, moment, reason, taken_at, "offset", consensus, format)
    values (
      ${consensus.question_id}, ${moment}, ${reason}, ${taken_at}, ${consensus.offset},
      ${JSON.stringify(consensus)}::text::json, ${format}
    )
    on conflict (question_id, moment, reason) do update
    set consensus = excluded.consensus, format = excluded.format
    where s.format < excluded.format
    returning moment`;
  return rows.length === 1;
};

/** Lists snapshots in an older format, with their questions, as far back as the log goes. */
export const listOutdated = (tx: Tx, most: number) => tx<
  (Snapshot & EndedShape & { readonly offset: number })[]
>`
  select s.moment, s.reason, s.taken_at, s."offset", ${shapeColumns(tx)}
  from consensus_snapshots s
  join questions q on q.id = s.question_id
  where s.format < ${tx.unsafe(String(format))}
    and s."offset" + 1 >= (select oldest from log_head)
  limit ${most}`;

type SnapshotRow = Omit<Snapshot, 'moment'> & {
  readonly id: string;
  readonly consensus: Consensus;
};

/** Reads one row more than the page, newest first. Skips snapshots in an older format. */
export const listSnapshots = (
  db: Db,
  question_id: string,
  { after, offset, limit }: PageRequest,
): Promise<SnapshotRow[]> => {
  const [taken_at = null, reason = null] = (after ?? []) as (string | null)[];
  return db<SnapshotRow[]>`
    select question_id as id, taken_at, reason, consensus
    from consensus_snapshots
    where question_id = ${question_id}
      and format = ${format}
      and (${taken_at}::timestamptz is null
        or (taken_at, reason) < (${taken_at}::timestamptz, ${reason}))
    order by taken_at desc, reason desc
    offset ${offset}
    limit ${limit + 1}`;
};

interface TrendRow {
  readonly question_id: string;
  readonly at: Date;
  /** The headline at that time; with options, of the option that leads now. */
  readonly value: number | null;
  /** `is_day`, `is_week`: the value of a day or a week ago. `in_trend`: a point of the trend. */
  readonly is_day: boolean;
  readonly is_week: boolean;
  readonly in_trend: boolean;
}

const max_past = 28;

/** Reads the past headlines of some questions from their snapshots, oldest first. */
export const readTrends = (
  db: Db,
  found: readonly Pick<Consensus, 'question_id' | 'leading_option'>[],
  now: Date,
) => db<TrendRow[]>`
  select
    s.question_id, s.taken_at as at, s.is_day, s.is_week, s.in_trend,
    coalesce(
      (
        select coalesce(o ->> 'forecast', o ->> 'mean_probability')::float8
        from json_array_elements(s.consensus -> 'options') o
        where o ->> 'option' = w.chosen
      ),
      (s.consensus ->> 'forecast')::float8
    ) as value
  from unnest(
    ${found.map(({ question_id }) => question_id)}::uuid[],
    ${found.map(({ leading_option }) => leading_option ?? '')}::text[]
  ) as w (id, chosen)
  cross join lateral (
    select
      *,
      ${now}::timestamptz - interval '1 day' <@ stood as is_day,
      ${now}::timestamptz - interval '7 days' <@ stood as is_week,
      n = 1 or n * ${max_past} / total > (n - 1) * ${max_past} / total as in_trend
    from (
      select
        *,
        tstzrange(taken_at, lead(taken_at) over in_order) as stood,
        row_number() over in_order as n,
        count(*) over () as total
      from consensus_snapshots
      where question_id = w.id and format = ${format}
      window in_order as (order by taken_at, reason)
    ) numbered
  ) s
  where s.is_day or s.is_week or s.in_trend
  order by s.question_id, s.taken_at, s.reason`;

export const countSnapshots = (db: Db, question_id: string) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total
    from consensus_snapshots
    where question_id = ${question_id} and format = ${format}`);

interface MoverRow {
  readonly at: number;
  readonly agent: string;
  readonly prediction_id: string;
  readonly user_name: string;
  readonly model_family: string;
  readonly revision: number;
  readonly reason: string | null;
  readonly reasoning: string;
}

/** Reads the forecasts of movers. Skips hidden predictions. */
export const readMovers = (db: Db, question_id: string, movers: readonly Mover[]) => db<MoverRow[]>`
  select
    m.at, m.agent, f.prediction_id, g.name as user_name, f.model_family, f.revision, f.reason,
    p.reasoning
  from unnest(
    ${movers.map(({ agent }) => agent)}::uuid[], ${movers.map(({ at }) => at)}::bigint[]
  ) as m (agent, at)
  join forecasts f
    on f.question_id = ${question_id}
    and f.agent_id = m.agent
    and (extract(epoch from f.forecast_at) * 1000)::bigint = m.at
  join predictions p on p.id = f.prediction_id and p.hidden_at is null
  join agents g on g.id = f.agent_id`;
