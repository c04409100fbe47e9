import { openAdmin } from '../help/own-stores.js';
import { startPgBouncer, withoutPgBouncer } from '../help/pgbouncer.js';
import { startPrivateStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Fault, fault_limits, is_long, startWorld, surviveAll } from './world.js';

/**
 * The service behind PgBouncer in transaction mode, configured as in `examples/pgbouncer`, under
 * load. PgBouncer disappears and comes back, and so do the connections behind it. `npm run faults
 * -- pgbouncer` runs the other tests of this folder this way too.
 */

t.setTimeout(fault_limits.timeout);

const skip = withoutPgBouncer();

t.test('behind PgBouncer, under load', { ...fault_limits, skip }, async (t) => {
  const stores = await startPrivateStores(t);
  const pgbouncer = await startPgBouncer(t, stores.database_url);
  const world = await startWorld(t, {
    env: {
      DATABASE_URL: pgbouncer.url,
      DATABASE_PREPARE: 'false',
      REDIS_URL: stores.redis_url,
      API_PROCESSES: '2',
    },
    stores,
  });
  const { sql } = world.service;

  await t.test('connections to Postgres have the limits that were asked for', async (t) => {
    const pooled = openAdmin(pgbouncer.url);
    const [row] = await pooled`
      select current_setting('statement_timeout') as statement,
        current_setting('lock_timeout') as lock,
        current_setting('idle_in_transaction_session_timeout') as idle`;
    t.same(row, { statement: '10s', lock: '1s', idle: '5s' });
    const long = await pooled.begin((tx) => tx`show statement_timeout`);
    t.same(long, [{ statement_timeout: '1min' }], 'a pool with more time has it');
    await pooled.end();
  });

  const rounds = is_long ? 20 : 3;
  const faults: Readonly<Record<string, Fault>> = {
    'PgBouncer is restarted': { strike: () => pgbouncer.restart() },
    'PgBouncer is killed again and again': {
      async strike({ load }) {
        for (let round = 0; round < rounds; round += 1) {
          await load.more(20);
          await pgbouncer.kill();
        }
      },
    },
    'its connections to Postgres are ended again and again': {
      is_noticed: true,
      async strike({ load }, t) {
        let ended = 0;
        for (let round = 0; round < rounds * 2; round += 1) {
          await load.more(20);
          ended += await until('there are some', async () => {
            const [row] = await sql<{ ended: number }[]>`
              select count(pg_terminate_backend(pid))::integer as ended
              from pg_stat_activity
              where application_name like 'prediction-forum %' and application_name not like '% test'`;
            return (row?.ended ?? 0) > 0 && row?.ended;
          });
        }
        t.comment(`${ended} connections were ended`);
      },
    },
    'Postgres is restarted behind it': { strike: () => stores.postgres.restart() },
  };
  await surviveAll(t, world, faults);
});
