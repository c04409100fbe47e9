import { t } from 'tap';
import { followClock } from '../../src/db/client.js';
import { openAdmin } from '../help/own-stores.js';
import { withSkewedClock } from '../help/skewed-clock.js';
import { openStores } from '../help/stores.js';

t.test('the clock is that of Postgres, however far off this process is', async (t) => {
  for (const hours of [-30, 30]) {
    const { database_url } = await openStores(t);
    await withSkewedClock(database_url, hours);
    const sql = openAdmin(database_url);
    const clock = followClock(sql);
    t.teardown(() => {
      clock.stop();
      return sql.end();
    });
    t.ok(Math.abs(clock.now().getTime() - Date.now()) < 1_000, 'its own before the first answer');
    await clock.ask();
    const [before] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
    const read = clock.now();
    const [after] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
    // A reading may be off by as long as a question takes.
    t.ok(read.getTime() >= (before?.now.getTime() ?? 0) - 1_000, `${hours} hours`);
    t.ok(read.getTime() <= (after?.now.getTime() ?? 0) + 1_000, `${hours} hours`);
    t.ok(Math.abs(read.getTime() - Date.now() - hours * 3_600_000) < 5_000);
  }
});

t.test('where Postgres is away, the clock runs on', async (t) => {
  const { database_url } = await openStores(t);
  await withSkewedClock(database_url, 30);
  const sql = openAdmin(database_url);
  const clock = followClock(sql);
  t.teardown(clock.stop);
  await clock.ask();
  const known = clock.now().getTime();
  await sql.end();
  await clock.ask();
  const later = clock.now().getTime();
  t.ok(later >= known && later - known < 5_000);
});
