import { once } from 'node:events';
import net from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Test } from 'tap';
import { type Host, readAddress } from '../../src/db/address.js';
import { openSql, type Sql } from '../../src/db/client.js';
import { isOutage } from '../../src/kit/outage.js';
import { pluck } from '../help/pluck.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Connections that end at the worst moment. Each pool has only one, which it must replace. */

interface World {
  /** A pool whose only connection goes through the proxy. */
  readonly sql: Sql;
  /** A pool that does not use the proxy. */
  readonly other: Sql;
  /** Cuts every connection, either cleanly or like a host that has lost its state. */
  cut(how: 'end' | 'reset'): void;
}

const startProxy = async (t: Test, url: string): Promise<{ port: number; cut: World['cut'] }> => {
  const { target } = readAddress(url).hosts[0] as Host;
  const open = new Set<net.Socket>();
  const server = net.createServer((client) => {
    const inside = net.connect(target);
    open.add(client);
    for (const socket of [client, inside]) socket.on('error', () => undefined);
    client.pipe(inside).pipe(client);
    client.on('close', () => {
      open.delete(client);
      inside.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (how: 'end' | 'reset'): void => {
    for (const socket of open) {
      if (how === 'end') socket.destroy();
      else socket.resetAndDestroy();
    }
  };
  t.teardown(() => {
    cut('reset');
    server.close();
  });
  return { port: (server.address() as net.AddressInfo).port, cut };
};

const makeWorld = async (t: Test): Promise<World> => {
  const { database_url } = await openStores(t);
  const proxied = new URL(database_url);
  proxied.searchParams.delete('host');
  const { port, cut } = await startProxy(t, database_url);
  proxied.port = String(port);
  const options = { pool: 1, prepare: true };
  const sql = openSql({ ...options, url: proxied.href, name: 'one' });
  const other = openSql({ ...options, url: database_url, name: 'other' });
  t.teardown(() => Promise.all([sql, other].map((pool) => pool.end({ timeout: 1 }))));
  await other`create table kept (n integer)`;
  return { sql, other, cut };
};

/** Without this, an endless wait would show only as a test that never ends. */
const inTime = async <T>(work: PromiseLike<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it never came back')), 4_000);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};

/** Resolves with the error if the work fails, otherwise with null. */
const errorOf = (work: PromiseLike<unknown>): PromiseLike<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

const worksAgain = async (t: Test, { sql }: World): Promise<void> => {
  for (const n of [1, 2, 3]) {
    const [row] = await inTime(sql<{ n: number }[]>`select ${n}::int as n`.execute());
    t.equal(row?.n, n, `query ${n} is answered`);
  }
};

for (const how of ['end', 'reset'] as const) {
  t.test(`${how} in the middle of a statement of a transaction`, async (t) => {
    const world = await makeWorld(t);
    const { sql, other, cut } = world;
    const failed = errorOf(
      sql.begin(async (tx) => {
        await tx`insert into kept values (1)`;
        await tx`select pg_sleep(10)`;
      }),
    );
    await until('the statement is under way', async () => {
      const rows = await other`select from pg_stat_activity where query = 'select pg_sleep(10)'`;
      return rows.length > 0;
    });
    cut(how);
    t.ok(isOutage(await inTime(failed)), 'the transaction fails as an outage');
    await worksAgain(t, world);
    t.same(await other`select n from kept`, []);
  });

  t.test(`${how} between two statements of a transaction`, async (t) => {
    const world = await makeWorld(t);
    const { sql, other, cut } = world;
    const failed = errorOf(
      sql.begin(async (tx) => {
        await tx`insert into kept values (1)`;
        cut(how);
        // Before the next statement, the pool reconnects for another query.
        await until('the pool works', async () => (await errorOf(sql`select 1`)) === null);
        await tx`insert into kept values (2)`;
      }),
    );
    t.ok(isOutage(await inTime(failed)), 'the transaction fails as an outage');
    await worksAgain(t, world);
    t.same(await other`select n from kept`, [], 'nothing ran outside the transaction');
  });

  t.test(`${how} between two statements: the next transaction is not disturbed`, async (t) => {
    const world = await makeWorld(t);
    const { sql, other, cut } = world;
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const dead = sql
      .begin(async (tx) => {
        await tx`insert into kept values (1)`;
        cut(how);
        await held;
        await tx`insert into kept values (2)`;
      })
      .catch((error: unknown) => error);
    await until('the connection is gone', () => dead.then(() => true));
    const next = sql.begin(async (tx) => {
      await tx`insert into kept values (3)`;
      goOn();
      for (let turns = 0; turns < 20; turns += 1) await nextTurn();
      await tx`insert into kept values (4)`;
    });
    await inTime(next);
    t.same(pluck(await other<{ n: number }[]>`select n from kept order by n`, 'n'), [3, 4]);
  });

  t.test(`${how} in any turn of the event loop`, async (t) => {
    const world = await makeWorld(t);
    const { sql, cut } = world;
    let outages = 0;
    for (let round = 0; round < 40; round += 1) {
      const asked = [
        sql`select 1`,
        sql`select ${'x'.repeat(round * 20)}::text`,
        sql.begin(async (tx) => {
          await tx`select 1`;
          await tx`select 2`;
        }),
      ].map(async (work) => {
        const error = await errorOf(work);
        if (error === null) return;
        outages += 1;
        if (!isOutage(error)) throw error;
      });
      for (let turns = round % 12; turns > 0; turns -= 1) await nextTurn();
      cut(how);
      const last = round % 2 === 0 ? errorOf(sql`select 3`) : null;
      await inTime(Promise.all([...asked, last]));
    }
    t.ok(outages > 10, `${outages} statements were cut`);
    await worksAgain(t, world);
  });
}
