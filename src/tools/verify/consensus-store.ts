import { type Db, readPages, type Sql, type Tx } from '../../db/client.js';
import { countAll, tallyKey } from '../../features/consensus/index.js';
import { givenBy } from '../../features/consensus/rules.js';
import { readHead, readProjected } from '../../features/events/index.js';
import { givenSides } from '../../features/predictions/index.js';
import { groupBy } from '../../kit/group-by.js';
import { chunk, type Query, shown, type VerifyParts } from './parts.js';

/**
 * Compares the live tallies in Redis with the record, while the log grows. Redis stores the offset
 * up to which it has followed the log. The offset of a tally shows exactly which events the tally
 * contains, and the record is read as of that offset. Questions are read in pages, so memory stays
 * flat.
 */

interface Tally {
  readonly question_id: string;
  /** Offset of the question's last forecast event that Redis has followed; 0 if there is none. */
  readonly last_offset: number;
  readonly hash: Readonly<Record<string, string>>;
}

const forecastEvents = (db: Db) => db`'prediction.placed', 'prediction.revised'`;

const readQuestions = (tx: Tx, projected: number) =>
  readPages(
    tx,
    tx<Omit<Tally, 'hash'>[]>`
    select q.id as question_id, coalesce(e.last_offset, 0) as last_offset
    from questions q
    left join (
      select question_id, max("offset") as last_offset
      from events
      where event in (${forecastEvents(tx)}) and "offset" <= ${projected}
      group by question_id
    ) e on e.question_id = q.id
    order by q.id`,
    chunk,
  );

interface Expected {
  readonly question_id: string;
  readonly options: number;
  readonly family: string;
  readonly yes: boolean | null;
  readonly option: number | null;
  readonly value: number;
  readonly probabilities: readonly number[] | null;
  readonly cdf: readonly number[] | null;
  /** Ids of the owners of all predictions that say this, joined by spaces. */
  readonly owners: string;
}

/**
 * Returns the forecasts by question and family, as of the offset of the question's tally. Later
 * forecasts, and forecasts that are not in the log yet, do not count.
 */
const readForecasts = (sql: Sql, ids: readonly string[], offsets: readonly number[]) => sql<
  Expected[]
>`
  with tallied as (
    select * from unnest(${ids}::uuid[], ${offsets}::bigint[]) as tallied (question_id, "offset")
  ),
  later as (
    select e.id
    from events e
    join tallied on tallied.question_id = e.question_id and e."offset" > tallied."offset"
    where e."offset" > ${Math.min(...offsets)} and e.event in (${forecastEvents(sql)})
  ),
  standing as (
    select distinct on (f.question_id, f.agent_id) f.*
    from forecasts f
    where f.question_id = any (array(select question_id from tallied))
      and not exists (select from outbox o where o.id = f.event_id)
      and not exists (select from later where later.id = f.event_id)
    order by f.question_id, f.agent_id, f.revision desc
  )
  select
    s.question_id,
    cardinality(q.options) as options,
    s.model_family as family,
    s.prediction as yes,
    case when s.cdf is null then s.selected_option else 0 end as option,
    coalesce(s.probability, s.confidence) as value,
    s.probabilities,
    s.cdf,
    string_agg(coalesce(s.owner_id, s.agent_id)::text, ' ') as owners
  from standing s
  join questions q on q.id = s.question_id
  group by 1, 2, 3, 4, 5, 6, 7, 8`;

/** Returns the age of the oldest event after an offset; null if there is no such event. */
export const readAgeAfter = async (sql: Sql, offset: number): Promise<number | null> => {
  const [row] = await sql<{ age_ms: number }[]>`
    select (extract(epoch from clock_timestamp() - recorded_at) * 1000)::integer as age_ms
    from events
    where "offset" > ${offset}
    order by "offset"
    limit 1`;
  return row?.age_ms ?? null;
};

const describe = (cells: ReadonlyMap<string, number>): string =>
  [...cells]
    .map(([field, count]) => `${field}=${count}`)
    .sort()
    .join(' ');

const describeHash = ({ o: _, t: __, ...counts }: Tally['hash']): string =>
  describe(new Map(Object.entries(counts).map(([field, count]) => [field, Number(count)])));

const expectCells = async (
  { sql }: VerifyParts,
  tallies: readonly Tally[],
  projected: number,
): Promise<ReadonlyMap<string, ReadonlyMap<string, number>>> => {
  const ids = tallies.map(({ question_id }) => question_id);
  const offsets = tallies.map(({ hash }) => Math.max(projected, Number(hash['o'] ?? 0)));
  const rows = await readForecasts(sql, ids, offsets);
  return new Map(
    [...groupBy(rows, ({ question_id }) => question_id)].map(([id, some]) => {
      const all = some.flatMap(({ owners, probabilities, options, ...said }) => {
        const given = givenBy(said, probabilities, options);
        return owners.split(' ').map((owner) => ({ ...said, owner, given }));
      });
      return [id, countAll(all).cells];
    }),
  );
};

const checkPage = async (
  parts: VerifyParts,
  page: readonly Omit<Tally, 'hash'>[],
): Promise<readonly string[]> => {
  const projected = await readProjected(parts.redis, parts.prefix);
  const { redis, prefix } = parts;
  const tallies = await Promise.all(
    page.map(async (one) => ({
      ...one,
      hash: await redis.hgetall(tallyKey(prefix, one.question_id)),
    })),
  );
  const wanted = await expectCells(parts, tallies, projected);
  const head = await readHead(parts.sql);
  return tallies.flatMap(({ question_id, last_offset, hash }) => {
    const cells = describe(wanted.get(question_id) ?? new Map());
    if (hash['o'] === undefined) {
      return cells === '' ? [] : [`question ${question_id} has no live tally`];
    }
    const live = describeHash(hash);
    const at = Number(hash['o']);
    return [
      ...(live === cells ? [] : [`question ${question_id} has tally ${live} instead of ${cells}`]),
      // The offset prevents an event from being counted twice, so it must not lag.
      ...(at >= last_offset && at <= head
        ? []
        : [`the tally of question ${question_id} is at offset ${at}, which is not its last event`]),
    ];
  });
};

/** Checks that every question has its tally, exact to the last value, with the right offset. */
export const checkTallies = async (parts: VerifyParts): Promise<readonly string[]> => {
  const projected = await readProjected(parts.redis, parts.prefix);
  const age_ms = await readAgeAfter(parts.sql, projected);
  const found: string[] = [];
  if (age_ms !== null && age_ms >= (parts.under_way_ms ?? 0)) {
    found.push(`Redis follows the log up to ${projected}, but the next event is ${age_ms} ms old`);
  }
  await parts.sql.begin({ mode: 'read only', statement_ms: 120_000 }, async (tx) => {
    for await (const page of readQuestions(tx, projected)) {
      found.push(...(await checkPage(parts, page)).slice(0, shown - found.length));
    }
  });
  return found;
};

/** Compares each snapshot of the consensus with the forecasts up to its offset in the log. */
export const snapshot_queries: readonly Query[] = [
  // Skips questions if the log no longer has all of their forecasts. A revision adds its difference
  // from the forecast that it replaces.
  (tx) => tx`
    with stated as (
      select f.*, e.id as logged, e."offset"
      from forecasts f
      left join events e on e.id = f.event_id and e.event in (${forecastEvents(tx)})
      where f.question_id in (select question_id from consensus_snapshots)
        and not exists (select from outbox o where o.id = f.event_id)
    ),
    placed as (
      select
        question_id,
        "offset",
        sum(predictions) over so_far as total,
        sum(yes) over so_far as yes,
        round(sum(value) over so_far / (100.0 * sum(predictions) over so_far), 2) as mean,
        count(*) filter (where logged is null) over (partition by question_id) as lost
      from (
        select
          *,
          (revision = 0)::integer as predictions,
          prediction::integer - coalesce(lag(prediction::integer) over own, 0) as yes,
          probability - coalesce(lag(probability) over own, 0) as value
        from stated
        window own as (partition by question_id, agent_id order by revision)
      ) p
      window so_far as (partition by question_id order by "offset")
    ),
    given as (
      select
        question_id,
        "offset",
        side,
        sum(given) over so_far as sum,
        (sum(predictions) over so_far) * others * 100 as whole
      from (
        select
          p.question_id,
          p."offset",
          s.side,
          cardinality(q.options) - 1 as others,
          (p.revision = 0)::integer as predictions,
          s.given - coalesce(
            lag(s.given) over (partition by p.question_id, p.agent_id, s.side order by p.revision), 0
          ) as given
        from questions q
        join stated p on p.question_id = q.id and p.logged is not null
        cross join ${givenSides(tx)}
        where q.question_type = 'multi'
      ) g
      window so_far as (partition by question_id, side order by "offset")
    ),
    means as (
      select
        question_id, "offset",
        string_agg(round(sum::numeric / whole, 2)::float8::text, ' ' order by side) as means
      from given
      group by question_id, "offset"
    ),
    compared as (
      select
        s.question_id,
        s.reason,
        s.moment,
        concat_ws(
          '/', s.consensus ->> 'total_predictions',
          case when q.question_type = 'binary' then s.consensus ->> 'yes_count' end,
          (s.consensus ->> 'mean_probability')::numeric::float8, s.consensus ->> 'offset',
          case when q.question_type = 'multi' and s.format > 1 then
            (
              select string_agg((o.one ->> 'mean_probability')::float8::text, ' ' order by o.n)
              from json_array_elements(s.consensus -> 'options') with ordinality o (one, n)
            )
          end
        ) as says,
        concat_ws(
          '/', coalesce(p.total, 0),
          case when q.question_type = 'binary' then coalesce(p.yes, 0) end,
          p.mean::float8, s."offset",
          case when q.question_type = 'multi' and s.format > 1 then l.means end
        ) as wanted
      from consensus_snapshots s
      join questions q on q.id = s.question_id
      left join placed p on p.question_id = s.question_id and p."offset" = s."offset"
      left join means l on l.question_id = s.question_id and l."offset" = s."offset"
      where not (s.reason = 'hourly' and s."offset" = 0)
        and not exists (
          select from placed o where o.question_id = s.question_id and o.lost > 0
        )
    )
    select
      'the ' || reason || ' snapshot of question ' || question_id || ' of ' || moment || ' says '
      || says || ' instead of ' || wanted as what
    from compared
    where says is distinct from wanted
    order by question_id, moment, reason`,
  // Snapshots of imported forecasts have the offset 0, and count the forecasts made up to a time.
  (tx) => tx`
    select
      'the hourly snapshot of question ' || question_id || ' of ' || moment || ' counts ' || says
      || ' predictions instead of ' || wanted as what
    from (
      select
        s.question_id,
        s.moment,
        (s.consensus ->> 'total_predictions')::integer as says,
        (
          select count(distinct f.agent_id)
          from forecasts f
          where f.question_id = s.question_id
            and f.forecast_at <= s.moment
            and not exists (select from outbox o where o.id = f.event_id)
        ) as wanted
      from consensus_snapshots s
      where s.reason = 'hourly'
        and s."offset" = 0
        and (select "offset" from snapshot_cursor) >= (select "offset" from log_head)
    ) compared
    where says <> wanted
    order by question_id, moment`,
  // The candidates are rounded to two decimals.
  (tx) => tx`
    select
      'the ' || s.reason || ' snapshot of question ' || s.question_id || ' of ' || s.moment
      || ' has the headline ' || (s.consensus ->> 'forecast') || ' instead of ' || c.mixture as what
    from consensus_snapshots s
    join questions q on q.id = s.question_id and q.range_min is null
    cross join lateral (
      select sum((one ->> 'weight')::float8 * (one ->> 'forecast')::float8) as mixture
      from json_array_elements(s.consensus -> 'candidates') one
    ) c
    where abs((s.consensus ->> 'forecast')::float8 - c.mixture) > 0.011
    order by s.question_id, s.moment, s.reason`,
];
