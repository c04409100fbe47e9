import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import { readParquet } from 'parquet-wasm';
import { pino } from 'pino';
import type { Test } from 'tap';
import { questionId } from '../../../bench/env/seed.js';
import { openSql } from '../../../src/db/client.js';
import { readMigrations } from '../../../src/db/migrate.js';
import { makeDay } from '../../../src/db/partition-store.js';
import { readTally } from '../../../src/features/consensus/store.js';
import {
  createRetention,
  type RetentionOptions,
} from '../../../src/features/retention/retention.js';
import { makeId } from '../../../src/kit/ids.js';
import { dumpDatabase } from '../../../src/tools/backup.js';
import { checkBackup, loadDatabase } from '../../../src/tools/restore.js';
import { findDifferences } from '../../../src/tools/verify.js';
import { makeEntry } from '../../help/log.js';
import { openParts } from '../../help/parts.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { startTimers } from '../../help/timer-processes.js';
import { until } from '../../help/until.js';
import { addPredictions, addQuestions } from '../consensus/world.js';

/** Old rows are removed after they are archived. Rows that are still needed stay. */

const day_ms = 86_400_000;
const fast = { every_ms: 20, settle_ms: 60 };

const open = async (t: Test, env: Readonly<Record<string, string>> = {}) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-archive-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const stores = await openStores(t);
  const all = { EVENTS_KEEP_DAYS: '8', ARCHIVE_DIR: folder, ...env };
  const logged: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) });
  const { deps } = await openParts(t, { stores, env: all, log });
  const { sql } = deps;
  /** Adds this many events to the log, dated this many days ago. */
  const record = async (days: number, count: number, has_partition = true): Promise<void> => {
    const at = new Date(Date.now() - days * day_ms);
    const recorded_on = at.toISOString().slice(0, 10);
    const [head] = await sql<{ offset: number }[]>`
      update log_head set "offset" = "offset" + ${count} returning "offset"`;
    const first = (head?.offset ?? 0) - count + 1;
    const day = recorded_on.replaceAll('-', '');
    const [found] = await sql`select to_regclass(${`events_${day}`}) as name`;
    if (has_partition && found?.['name'] === null) {
      await sql.begin((tx) => makeDay(tx, 'events', day));
    }
    const rows = Array.from({ length: count }, (_, n) => ({
      ...makeEntry(first + n),
      recorded_on,
      recorded_at: at,
    }));
    await sql`insert into events ${sql(rows as never[])}`;
    await sql`update snapshot_cursor set "offset" = ${head?.offset ?? 0}`;
    await sql`update delivery_plan set planned_offset = ${head?.offset ?? 0}`;
  };
  const start = async (options: RetentionOptions = fast): Promise<void> => {
    const retention = createRetention(deps, options);
    await retention.start();
    t.teardown(() => retention.stop());
  };
  const offsets = async (): Promise<readonly number[]> =>
    (await sql<{ offset: number }[]>`select "offset" from events order by 1`).map((e) => e.offset);
  const oldest = async () => (await sql`select oldest from log_head`)[0]?.['oldest'];
  return { folder, stores, deps, sql, record, start, offsets, oldest, logged, env: all };
};

/** The rows in all archive files of a table. */
const readArchive = (folder: string, table: string): readonly Record<string, unknown>[] =>
  readdirSync(folder)
    .filter((name) => name.startsWith(`${table}-`) && name.endsWith('.parquet'))
    .sort()
    .flatMap((name) => {
      const bytes = new Uint8Array(readFileSync(path.join(folder, name)));
      return [...tableFromIPC(readParquet(bytes).intoIPCStream())].map(
        (row) => row?.toJSON() ?? {},
      );
    });

const upTo = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

t.test('old days of the log go whole, and verify knows from where it is kept', async (t) => {
  const { folder, deps, sql, stores, record, start, offsets, oldest } = await open(t);
  await record(20, 30, false);
  await record(12, 40);
  await record(11, 5);
  await record(9, 5);
  await record(8, 10);
  await record(0, 10);
  const bodies = await sql<{ body: string }[]>`select body from events order by "offset" limit 80`;
  await start();
  await until('the old are gone', async () => (await offsets()).length === 20);
  t.same(await offsets(), upTo(81, 100));
  t.equal(await oldest(), 81);
  const [gone] = await sql`
    select count(*)::integer as days from pg_inherits where inhparent = 'events'::regclass`;
  t.equal(gone?.['days'], 3, 'two days and the default partition');
  const archived = readArchive(folder, 'events');
  t.same(
    archived.map((row) => row['offset']),
    upTo(1, 80),
  );
  const points = await sql<{ offset: number; digest: string }[]>`
    select "offset", digest from event_digests order by 1`;
  t.same(
    points.map((point) => point.offset),
    [0, 30, 70, 75, 80],
    'the digest goes on where events are kept from',
  );
  t.same(
    archived.map((row) => row['body']),
    bodies.map(({ body }) => body),
  );
  t.notOk(readdirSync(folder).some((name) => name.endsWith('.tmp')));

  const file = path.join(folder, 'kept.tar.gz');
  const say = () => undefined;
  await dumpDatabase(sql, { file, secret_key_check: null, say });
  const { sql: restored } = (await openParts(t)).deps;
  const manifest = await checkBackup(file);
  const emptyRedis = async () => undefined;
  const migrations = readMigrations();
  await loadDatabase(restored, { file, manifest, migrations, replace: true, emptyRedis, say });
  t.same(
    await restored`select "offset" from events order by 1`,
    await sql`select "offset" from events order by 1`,
  );
  t.match(await restored`select oldest from log_head`, [{ oldest: 81 }]);

  const { redis } = deps;
  const parts = { sql, redis, prefix: stores.redis_prefix, without_boards: true };
  const about = async (what: RegExp) => (await findDifferences(parts)).filter((d) => what.test(d));
  t.same(await about(/the log has/), []);
  await sql`delete from events where "offset" = 81`;
  t.match(await about(/the log has/), [/from 82 to 100; its oldest is 81/]);
});

t.test('the newest day stays, however old; without the setting everything does', async (t) => {
  const { record, start, offsets, folder, deps } = await open(t, { ARCHIVE_DIR: '' });
  await record(30, 10);
  await record(20, 10);
  await deps.sql.begin((tx) => makeDay(tx, 'attempts', '20260101'));
  const off = createRetention({ ...deps, config: { ...deps.config, EVENTS_KEEP_DAYS: 0 } }, fast);
  await off.start();
  await until('a turn', async () => {
    const [row] = await deps.sql`select to_regclass('attempts_20260101') as name`;
    return row?.['name'] === null;
  });
  await off.stop();
  t.equal((await offsets()).length, 20);
  // `oldest` moves past one day after another, before the first day is dropped.
  await start();
  await until('the first day is gone', async () => (await offsets()).length === 10);
  t.same(await offsets(), upTo(11, 20));
  t.same(readdirSync(folder), [], 'no archive is asked for');
});

t.test('events that a webhook or the snapshots still need stay', async (t) => {
  const { sql, record, start, oldest, logged } = await open(t);
  const hasSaid = (first: number, next: number) =>
    until('it is said', () =>
      logged.some((line) => line.includes(`"next":${next},"needed_from":${first}`)),
    );
  await record(12, 10);
  await record(11, 10);
  await record(0, 1);
  const [webhook_id, event_id] = [makeId(), makeId()];
  await sql`
    insert into deliveries
      (webhook_id, event_id, id, event_offset, recorded_on, state, next_at)
    values (${webhook_id}, ${event_id}, ${makeId()}, 15, now(), 'pending', now())`;
  await sql`update snapshot_cursor set "offset" = 4`;
  await start();
  await hasSaid(5, 11);
  t.equal(await oldest(), 1);
  await sql`update snapshot_cursor set "offset" = 21`;
  await until('the first day is passed', async () => (await oldest()) === 11);
  await hasSaid(15, 21);
  t.equal(await oldest(), 11);
  await sql`update deliveries set state = 'exhausted'`;
  await until('the second too', async () => (await oldest()) === 21);
});

t.test('a reader that holds the log for long delays the drop, and no writer', async (t) => {
  const { sql, stores, record, start, offsets, oldest } = await open(t);
  await record(12, 10);
  await record(0, 1);
  const other = openSql({ url: stores.database_url, pool: 1, prepare: true, name: 'backup' });
  t.teardown(() => other.end({ timeout: 1 }));
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const reading = other.begin(async (tx) => {
    await tx`select count(*) from events`;
    await held;
  });
  await start();
  await until('the floor has moved', async () => (await oldest()) === 11);
  let longest_ms = 0;
  for (const end_ms = performance.now() + 700; performance.now() < end_ms; ) {
    const began_ms = performance.now();
    await sql`update events set category = 'society' where "offset" = 11`;
    longest_ms = Math.max(longest_ms, performance.now() - began_ms);
  }
  t.ok(longest_ms < 1_000, `the longest write took ${longest_ms} ms`);
  t.equal((await offsets()).length, 11);
  release();
  await reading;
  await until('the day is gone', async () => (await offsets()).length === 1);
});

t.test('killed at any moment it has lost nothing', async (t) => {
  const days = upTo(10, 15).reverse();
  const { folder, stores, record, offsets, oldest, start, env } = await open(t);
  for (const day of days) await record(day, 60);
  await record(0, 1);
  const total = days.length * 60 + 1;
  const files = (end: string) => readdirSync(folder).filter((name) => name.endsWith(end)).length;
  const measures = {
    'a file is begun': async () => files('.tmp'),
    'a file is whole': async () => files('.parquet'),
    'the floor moves': oldest,
    'a day is gone': async () => -(await offsets()).length,
  } as const;
  const moments = [0, 1, 2, 0, 1, 2, 3].map((n) => Object.entries(measures)[n] as never);
  for (const [what, measure] of moments as [string, () => Promise<number>][]) {
    const before = await measure();
    const child = { stores: { ...stores, env }, count: 1 } as const;
    const [timer] = await startTimers(t, new URL('retention-child.js', import.meta.url), child);
    await until(what, async () => (await measure()) > before, 30_000, 1);
    const ended = new Promise((resolve) => timer?.once('exit', resolve));
    timer?.kill('SIGKILL');
    await ended;
    const archived = readArchive(folder, 'events').map((row) => row['offset'] as number);
    t.equal(new Set([...(await offsets()), ...archived]).size, total, `killed when ${what}`);
    t.equal(new Set(archived).size, archived.length, 'none is in two files');
  }
  await start();
  await until('the rest is gone', async () => (await offsets()).length === 1);
  t.same(
    readArchive(folder, 'events').map((row) => row['offset']),
    upTo(1, total - 1),
  );
});

t.test('attempts go with their day, snapshots by rows; both are in the archive', async (t) => {
  const { sql, folder, start } = await open(t, { SNAPSHOTS_KEEP_DAYS: '8' });
  const day = new Date(Date.now() - 40 * day_ms).toISOString().slice(0, 10).replaceAll('-', '');
  await sql.begin((tx) => makeDay(tx, 'attempts', day));
  await sql`
    insert into attempts (webhook_id, event_id, attempt, at, latency_ms, status)
    select gen_random_uuid(), gen_random_uuid(), n, ${day}::text::date + interval '5 hours', n, 204
    from generate_series(1, 20) n
    union all select gen_random_uuid(), gen_random_uuid(), 1, now(), 3, 204`;
  await addQuestions(sql, { count: 2 });
  const hour = (hours: number) =>
    new Date(Math.floor(Date.now() / 3_600_000 - hours) * 3_600_000).toISOString();
  const put = (question: number, reason: string, hours: number) => sql`
    insert into consensus_snapshots (question_id, moment, reason, taken_at, "offset", consensus)
    values (${questionId(question)}, ${hour(hours)}, ${reason}, ${hour(hours)}, 0, '{"n": 1}')`;
  for (const hours of [400, 399, 300]) await put(0, 'hourly', hours);
  await put(0, 'closed', 350);
  await put(0, 'hourly', 20);
  for (const hours of [500, 499]) await put(1, 'hourly', hours);
  await start();
  await until('the attempts are gone', async () => (await sql`select from attempts`).length === 1);
  t.equal(readArchive(folder, 'attempts').length, 20);
  const read = () => sql`select reason, moment from consensus_snapshots order by moment`;
  await until('the snapshots are gone', async () => (await read()).length === 3);
  t.match(await read(), [
    { reason: 'hourly', moment: new Date(hour(499)) },
    { reason: 'closed' },
    { reason: 'hourly', moment: new Date(hour(20)) },
  ]);
  const archived = readArchive(folder, 'snapshots');
  t.same(
    archived.map((row) => Number(row['moment'])),
    [500, 400, 399, 300].map((n) => Date.parse(hour(n))),
  );
});

t.test('what a question was at an offset counts forecasts whose events are gone', async (t) => {
  const { sql } = await open(t);
  await addQuestions(sql, { count: 1 });
  const some = (from: number) =>
    upTo(from, from + 3).map((agent) => ({
      question: 0,
      agent,
      at: new Date(),
      family: 'gpt',
      value: 10 + agent,
    }));
  await addPredictions(sql, some(0));
  await addPredictions(sql, some(4));
  const id = questionId(0);
  const tallyAt = (before: number) => sql.begin((tx) => readTally(tx, id, before));
  const [whole, early] = [await tallyAt(7), await tallyAt(5)];
  t.equal(whole.offset, 6);
  await sql`delete from events where "offset" <= 4`;
  await sql`update log_head set oldest = 5`;
  t.strictSame(await tallyAt(7), whole);
  t.strictSame(await tallyAt(5), early, 'all of it gone');
});
