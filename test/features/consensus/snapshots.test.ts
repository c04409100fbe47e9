import type { Test } from 'tap';
import { questionId } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import { createSnapshotTaker } from '../../../src/features/consensus/index.js';
import type { Consensus } from '../../../src/features/consensus/rules.js';
import { listOutdated, putSnapshot, type Snapshot } from '../../../src/features/consensus/store.js';
import { snapshot_queries } from '../../../src/tools/verify/consensus-store.js';
import { findBy } from '../../../src/tools/verify/parts.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { openParts } from '../../help/parts.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { startTimers } from '../../help/timer-processes.js';
import { until } from '../../help/until.js';
import { addEvent, addPredictions, addQuestions, type Placed, without } from './world.js';

/** Snapshots are taken at the right times, exactly once each, and equal the result of SQL. */

const families = ['claude', 'gemini', 'gpt'];
const hour_ms = 3_600_000;

const some = (question: number, from: number, count: number, at = new Date()): Placed[] =>
  Array.from({ length: count }, (_, n) => ({
    question,
    agent: from + n,
    at,
    family: families[(from + n) % 3] as string,
    value: (37 * (from + n) + 11 * question) % 101,
  }));

interface Taken {
  readonly question_id: string;
  readonly reason: string;
  readonly taken_at: Date;
  readonly offset: number;
  readonly consensus: Record<string, unknown>;
}

const readAll = (sql: Sql) => sql<Taken[]>`
  select question_id, reason, taken_at, "offset", consensus
  from consensus_snapshots
  order by question_id, "offset", taken_at, reason`;

const openWorld = async (t: Test, count: number) => {
  const parts = await openParts(t);
  const { sql } = parts.deps;
  await addQuestions(sql, { count });
  return { ...parts, sql };
};

/** Runs the snapshot taker until no snapshot is due. */
const takeAll = async (taker: ReturnType<typeof createSnapshotTaker>): Promise<number> => {
  let sum = 0;
  for (;;) {
    const { taken, more } = await taker.turn();
    sum += taken;
    if (!more) return sum;
  }
};

const close = async (sql: Sql, question: number, at: Date): Promise<void> => {
  const id = questionId(question);
  await sql`update questions set status = 'closed', closed_at = ${at} where id = ${id}`;
  await addEvent(sql, { event: 'question.closed', question, at });
};

const lookAt = (sql: Sql) => sql.begin((tx) => findBy(tx, snapshot_queries, ''));

t.test('once an hour, and only what moved', async (t) => {
  const { sql, deps, advance } = await openWorld(t, 120);
  const taker = createSnapshotTaker(deps);
  t.equal(await takeAll(taker), 0, 'nobody predicted');
  await addPredictions(sql, Array.from({ length: 120 }, (_, n) => some(n, 0, 3)).flat());
  t.equal(await takeAll(taker), 0, 'the hour is done with');
  advance(hour_ms);
  t.equal(await takeAll(taker), 120, 'the next hour');
  t.equal(await takeAll(taker), 0);
  advance(hour_ms);
  t.equal(await takeAll(taker), 0, 'nothing moved');
  await addPredictions(sql, some(7, 3, 2));
  advance(hour_ms);
  t.equal(await takeAll(taker), 1);
  t.equal(await takeAll(createSnapshotTaker(deps)), 0, 'a timer that starts anew');
  const rows = await readAll(sql);
  const wanted = await recomputeConsensus(sql);
  const latest = new Map(rows.map((row) => [row.question_id, row]));
  t.equal(rows.length, 121);
  t.equal(latest.size, 120);
  for (const [id, { consensus, reason }] of latest) {
    t.strictSame(without(consensus), wanted.get(id));
    t.equal(reason, 'hourly');
  }
});

t.test('at the close and at each resolution, whenever a timer gets to it', async (t) => {
  const { sql, deps } = await openWorld(t, 2);
  const closed_at = new Date(Date.now() - 20 * 60_000);
  const resolved = [15, 5].map((minutes) => new Date(Date.now() - minutes * 60_000));
  await addPredictions(sql, some(0, 0, 9, new Date(closed_at.getTime() - 1)));
  const wanted = await recomputeConsensus(sql);
  await close(sql, 0, closed_at);
  for (const at of resolved) await addEvent(sql, { event: 'question.resolved', question: 0, at });
  await close(sql, 1, closed_at);
  // Question 0 is reopened before a timer runs. The snapshot shows the consensus when it closed.
  await sql`update questions set status = 'open', closed_at = null where id = ${questionId(0)}`;
  await addPredictions(sql, some(0, 9, 5, new Date(closed_at.getTime() + 1)));
  await takeAll(createSnapshotTaker(deps));
  const rows = (await readAll(sql)).filter(({ reason }) => reason !== 'hourly');
  const ends = rows.map(({ question_id, reason, taken_at }) => [question_id, reason, taken_at]);
  t.same(ends, [
    [questionId(0), 'closed', closed_at],
    [questionId(0), 'resolved', resolved[0]],
    [questionId(0), 'resolved', resolved[1]],
    [questionId(1), 'closed', closed_at],
  ]);
  for (const { question_id, consensus, offset } of rows) {
    t.strictSame(without(consensus), wanted.get(question_id));
    t.equal(offset, question_id === questionId(0) ? 9 : 0);
    t.equal(consensus['offset'], offset);
  }
});

t.test('what is in the outbox is not counted yet', async (t) => {
  const { sql, deps } = await openWorld(t, 1);
  await addPredictions(sql, some(0, 0, 4));
  const wanted = await recomputeConsensus(sql);
  await addPredictions(sql, some(0, 4, 1));
  await sql`
    with gone as (delete from events where "offset" = 5 returning id, event, question_id, body),
    head as (update log_head set "offset" = 4),
    counts as (update question_counts set prediction_count = 4, prediction_offset = 4)
    insert into outbox (id, event, question_id, body) select id, event, question_id, body from gone`;
  await takeAll(createSnapshotTaker(deps));
  const [row] = await readAll(sql);
  t.strictSame(without(row?.consensus ?? {}), wanted.get(questionId(0)));
  t.equal(row?.offset, 4);
});

t.test('a moment has one snapshot, and another one for it changes nothing', async (t) => {
  const { sql, deps, advance } = await openWorld(t, 1);
  await addPredictions(sql, some(0, 0, 3));
  advance(hour_ms);
  await takeAll(createSnapshotTaker(deps));
  const before = await readAll(sql);
  const [row] = await sql<(Snapshot & { readonly consensus: Consensus })[]>`
    select reason, moment, taken_at, consensus from consensus_snapshots`;
  const other = { ...row!.consensus, total_predictions: 99 };
  t.equal(await sql.begin((tx) => putSnapshot(tx, row!, other)), false);
  t.same(await readAll(sql), before);
});

t.test('what an older program took is made anew, as it stood at its moment', async (t) => {
  const { sql, deps, advance } = await openWorld(t, 1);
  await addQuestions(sql, { count: 1, options: ['Rises', 'Stays', 'Falls'], first: 1 });
  const taker = createSnapshotTaker(deps);
  for (const from of [0, 5]) {
    const multi = some(1, from, 5).map((one, n) => ({ ...one, option: n % 3 }));
    await addPredictions(sql, [...some(0, from, 5), ...multi]);
    advance(hour_ms);
    await takeAll(taker);
  }
  const before = await readAll(sql);
  t.equal(before.length, 4);
  // Format 1 had only shares.
  await sql`
    update consensus_snapshots
    set
      format = 1,
      consensus = jsonb_set(
        consensus::jsonb - 'forecast' - 'leading_option', '{yes_percent}',
        case when consensus ->> 'question_type' = 'multi' then '1'::jsonb
          else consensus::jsonb -> 'yes_percent' end
      )::json`;
  t.same(await lookAt(sql), [], 'and until then it is no difference');
  await takeAll(createSnapshotTaker(deps));
  t.same(await readAll(sql), before);
  t.same(await lookAt(sql), []);
  await sql`
    update consensus_snapshots
    set consensus = jsonb_set(consensus::jsonb, '{forecast}', '99')::json
    where question_id = ${questionId(1)} and "offset" = 10`;
  t.match(await lookAt(sql), [/has the headline 99 instead of/]);
});

t.test('an older snapshot is made again as far back as the log goes', async (t) => {
  const { sql, deps, advance } = await openWorld(t, 1);
  await addPredictions(sql, some(0, 0, 3));
  advance(hour_ms);
  await takeAll(createSnapshotTaker(deps));
  await sql`update consensus_snapshots set format = 1`;
  for (const [oldest, count] of [
    [4, 1],
    [5, 0],
  ] as const) {
    await sql`update log_head set "offset" = 9, oldest = ${oldest}`;
    t.equal((await sql.begin((tx) => listOutdated(tx, 10))).length, count, `from ${oldest} on`);
  }
});

t.test('verify finds a snapshot that says something else than the record', async (t) => {
  const { sql, deps, advance } = await openWorld(t, 2);
  await addQuestions(sql, { count: 1, options: ['Rises', 'Falls'], first: 2 });
  const taker = createSnapshotTaker(deps);
  for (let from = 0; from < 9; from += 3) {
    const multi = some(2, from, 3).map((one) => ({ ...one, option: one.agent % 2 }));
    await addPredictions(sql, [...some(0, from, 3), ...some(1, from, 3), ...multi]);
    await takeAll(taker);
    advance(hour_ms);
  }
  t.equal((await readAll(sql)).length, 9);
  t.same(await lookAt(sql), []);
  await sql`
    update consensus_snapshots
    set consensus = (consensus::jsonb || '{"yes_count": 9}')::json
    where question_id = ${questionId(1)} and "offset" < 10`;
  const [line, ...rest] = await lookAt(sql);
  t.match(line, new RegExp(`^the hourly snapshot of question ${questionId(1)} of .* says 3/9/`));
  t.same(rest, []);
});

const timer_module = new URL('./snapshot-child.js', import.meta.url);

t.test('two timers, one killed in the middle: one of each, and all of them', async (t) => {
  const stores = await openStores(t);
  const { deps } = await openParts(t, { stores });
  const { sql } = deps;
  const count = 600;
  await addQuestions(sql, { count });
  const closed_at = new Date(Date.now() - 60_000);
  const before = new Date(closed_at.getTime() - 1);
  await addPredictions(sql, Array.from({ length: count }, (_, n) => some(n, 0, 4, before)).flat());
  const [victim] = await startTimers(t, timer_module, { stores, count: 2 });
  for (let n = 0; n < count; n += 1) await close(sql, n, closed_at);
  await until('a part is there', async () => (await readAll(sql)).length > 50);
  victim?.removeAllListeners('exit');
  victim?.kill('SIGKILL');
  const rows = await until('all are there', async () => {
    const all = (await readAll(sql)).filter(({ reason }) => reason === 'closed');
    return all.length >= count && all;
  });
  const wanted = await recomputeConsensus(sql);
  t.equal(rows.length, count);
  t.equal(new Set(rows.map(({ question_id }) => question_id)).size, count);
  for (const { question_id, consensus } of rows) {
    t.strictSame(without(consensus), wanted.get(question_id));
  }
});

t.test('imported forecasts give the days before the import their snapshots', async (t) => {
  const { deps, sql } = await openWorld(t, 2);
  await sql`
    update questions set source = 'archive', source_id = 'one' where id = ${questionId(0)}`;
  const daysAgo = (days: number) => new Date(deps.clock().getTime() - days * 24 * hour_ms);
  const taker = createSnapshotTaker(deps);
  const readCounts = async () =>
    (await readAll(sql))
      .filter(({ offset }) => offset === 0)
      .sort((a, b) => a.taken_at.getTime() - b.taken_at.getTime())
      .map(({ question_id, consensus }) => [question_id, consensus['total_predictions']]);
  const counted = (...parts: readonly (readonly [count: number, days: number])[]) =>
    parts.flatMap(([count, days]) => Array.from({ length: days }, () => [questionId(0), count]));

  const old = some(0, 0, 1, daysAgo(40.5));
  const newer = some(0, 1, 1, daysAgo(10.5));
  await addPredictions(sql, [...old, ...newer, ...some(1, 0, 1, daysAgo(10.5))]);
  await takeAll(taker);
  t.same(await readCounts(), counted([1, 1], [2, 1]), 'only the imported question has them');

  await addPredictions(sql, some(0, 2, 1, daysAgo(20.5)));
  await takeAll(taker);
  t.same(await readCounts(), counted([2, 1], [3, 1]), 'later imports replace them');
  t.same(await lookAt(sql), []);
});
