import type { Test } from 'tap';
import { openSql, readPages, type Sql } from '../../src/db/client.js';
import { isOutage } from '../../src/kit/outage.js';
import { openAdmin } from '../help/own-stores.js';
import { startPrivateStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { is_long } from './world.js';

/**
 * A pool under load while its connections, or all of Postgres, are ended at random. Nothing is half
 * committed, lost or doubled. No call waits forever, and every error reaches its caller.
 */

/** Longer than any timeout of the pool. */
const longest_ms = 20_000;

interface Load {
  readonly stored: ReadonlySet<number>;
  readonly outages: () => number;
  readonly tried: () => number;
  stop(): Promise<void>;
}

/** Writes both rows for a number, in one of the ways in which the service writes. */
const writeBoth = (sql: Sql, n: number): Promise<unknown> =>
  sql.begin(async (tx) => {
    if (n % 4 === 0) {
      await tx`insert into kept values (${n}, 0)`;
      return tx`insert into kept values (${n}, 1)`;
    }
    if (n % 4 === 1) {
      tx`insert into kept values (${n}, 0)`.execute();
      const second = tx`insert into kept values (${n}, 1)`.execute();
      tx.commit();
      return second;
    }
    await Promise.all([0, 1].map((side) => tx`insert into kept values (${n}, ${side})`));
    if (n % 4 === 3) for await (const _ of readPages(tx, tx`select * from kept`, 500));
    return null;
  });

const readOne = async (sql: Sql, n: number): Promise<unknown> => {
  if (n % 3 > 0) return sql`select ${n}::integer as n, ${'x'.repeat(n % 2_000)}::text`;
  let bytes = 0;
  for await (const chunk of sql.copyOut('copy (select * from kept limit 5000) to stdout')) {
    bytes += (chunk as Buffer).length;
  }
  return bytes;
};

/** Without this, an endless wait would show only as a test that never ends. */
const inTime = async <T>(work: Promise<T>, what: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} never came back`)), longest_ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};

const startLoad = (sql: Sql): Load => {
  const stored = new Set<number>();
  let outages = 0;
  let next = 0;
  let stopping = false;
  const work = async (): Promise<void> => {
    while (!stopping) {
      next += 1;
      const n = next;
      try {
        await inTime(writeBoth(sql, n), `write ${n}`);
        stored.add(n);
        await inTime(readOne(sql, n), `read ${n}`);
      } catch (error) {
        if (!isOutage(error)) throw error;
        outages += 1;
      }
    }
  };
  const workers = Promise.all(Array.from({ length: 12 }, work));
  return {
    stored,
    outages: () => outages,
    tried: () => next,
    async stop() {
      stopping = true;
      await workers;
    },
  };
};

const listenForStrays = (t: Test): readonly unknown[] => {
  const strays: unknown[] = [];
  const note = (error: unknown): void => {
    strays.push(error);
  };
  process.on('unhandledRejection', note);
  t.teardown(() => process.off('unhandledRejection', note));
  return strays;
};

const endAtRandom = async (t: Test, admin: Sql): Promise<void> => {
  const min_ms = is_long ? 30_000 : 2_000;
  const until_ms = performance.now() + min_ms;
  let ended = 0;
  while (performance.now() < until_ms) {
    const [row] = await admin<{ ended: number }[]>`
      select (pg_sleep(0.02)::text || count(pg_terminate_backend(pid)))::integer as ended
      from (
        select pid from pg_stat_activity
        where application_name = 'prediction-forum victim'
        order by random()
        limit 1
      ) one`;
    ended += row?.ended ?? 0;
  }
  t.ok(ended > min_ms / 100, `${ended} connections were ended`);
};

t.test(
  'connections end at random, and then Postgres is killed',
  { timeout: 120_000 },
  async (t) => {
    const stores = await startPrivateStores(t);
    const strays = listenForStrays(t);
    const admin = openAdmin(stores.database_url);
    await admin`create table kept (n integer, side integer, primary key (n, side))`;
    const sql = openSql({ url: stores.database_url, pool: 6, prepare: true, name: 'victim' });
    t.teardown(() => Promise.all([sql, admin].map((pool) => pool.end({ timeout: 1 }))));
    const load = startLoad(sql);
    const more = (count: number) => {
      const wanted = load.stored.size + count;
      return until('it goes on', () => load.stored.size > wanted);
    };
    await endAtRandom(t, admin);
    for (let kill = 0; kill < (is_long ? 8 : 3); kill += 1) {
      await more(100);
      await stores.postgres.kill();
      await stores.postgres.restart();
    }
    await more(50);
    await load.stop();
    const rows = await admin<{ n: number; sides: number }[]>`
    select n, count(*)::integer as sides from kept group by n`;
    const found = new Map(rows.map(({ n, sides }) => [n, sides]));
    t.same(
      rows.filter(({ sides }) => sides !== 2),
      [],
      'nothing is there by half',
    );
    t.same(
      [...load.stored].filter((n) => !found.has(n)),
      [],
      `all ${load.stored.size} that were acknowledged are there`,
    );
    t.ok(load.outages() > 3, `${load.outages()} of ${load.tried()} failed by outages`);
    const [left] = await admin<{ count: number }[]>`
    select count(*)::integer from pg_stat_activity
    where application_name = 'prediction-forum victim' and state like 'idle in transaction%'`;
    t.equal(left?.count, 0, 'no transaction is left open');
    t.same(strays, [], 'no error went astray');
  },
);
