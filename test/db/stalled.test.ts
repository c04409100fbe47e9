import { pino } from 'pino';
import { openSql, type Sql } from '../../src/db/client.js';
import { createStalledSweep } from '../../src/db/stalled.js';
import { startFaultyProxy } from '../help/faulty-proxy.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Sessions of processes that stall in the middle of a statement and keep their locks. */

const isLocked = async (sql: Sql, key: number): Promise<boolean> => {
  const [row] = await sql<{ free: boolean }[]>`
    select pg_try_advisory_xact_lock(${key}) as free`;
  return row?.free === false;
};

t.test('a session that waits for the values of a statement is ended', async (t) => {
  const { database_url } = await openStores(t);
  const proxy = await startFaultyProxy(t, database_url);
  const open = (url: string) => {
    const opened = openSql({ url, pool: 1, prepare: true, name: 'test' });
    t.teardown(() => opened.end({ timeout: 1 }));
    return opened;
  };
  const [cut_off, busy, sql] = [open(proxy.url), open(database_url), open(database_url)];

  const broken = cut_off.begin({ statement_ms: 60_000 }, async (tx) => {
    await tx`select pg_advisory_xact_lock(${1})`;
    proxy.mute();
    await tx`select ${2}::integer`;
  });
  const failed = t.rejects(broken);
  await until('it has its lock', () => isLocked(sql, 1));
  await until('it waits', async () => {
    const waiting = await sql`
      select from pg_stat_activity
      where datname = current_database() and state = 'active' and wait_event = 'ClientRead'
        and query like '%::integer%'`;
    return waiting.length === 1;
  });
  // A session that is working or receiving rows is left alone.
  const working = busy.begin(async (tx) => {
    await tx`create temporary table copied (n integer)`;
    const slowly = async function* () {
      yield Buffer.from('1\n');
      const from_ms = performance.now();
      await until('some time has passed', () => performance.now() - from_ms > 2_000);
      yield Buffer.from('2\n');
    };
    await tx.copyIn('copy copied from stdin', slowly());
    return tx`select count(*)::integer as count, pg_sleep(1) from copied`;
  });

  t.ok(await isLocked(sql, 1), 'it keeps its lock');
  const sweep = createStalledSweep(sql, pino({ level: 'silent' }), 100, 500);
  await sweep.start();
  t.teardown(() => sweep.stop());
  await until('its lock is free', async () => !(await isLocked(sql, 1)), 5_000);
  await failed;
  t.match(await working, [{ count: 2 }]);
});
