import { type Test, t } from 'tap';
import { type Db, openSql, type Sql } from '../../src/kit/pg/client.js';
import { inLine, inShort, sendOne } from '../../src/kit/pg/short-transaction.js';
import { openStores } from '../help/stores.js';

const openPools = async (t: Test): Promise<{ readonly sql: Sql; readonly other: Sql }> => {
  const { database_url } = await openStores(t);
  const [sql, other] = ['one', 'other'].map((name) =>
    openSql({ url: database_url, pool: 1, prepare: true, name }),
  ) as [Sql, Sql];
  t.teardown(() => Promise.all([sql, other].map((pool) => pool.end({ timeout: 1 }))));
  await other`create table kept (n integer unique)`;
  return { sql, other };
};

const readKept = async (sql: Sql): Promise<readonly number[]> =>
  (await sql<{ n: number }[]>`select n from kept order by n`).map(({ n }) => n);

t.test('a short transaction is one transaction, from its first statement on', async (t) => {
  const { sql, other } = await openPools(t);
  const add = (n: number, send_last: boolean) =>
    inShort(sql, async (tx, sendLast) => {
      const [first] = await tx<{ x: string }[]>`select pg_current_xact_id()::text as x`;
      t.strictSame(await readKept(other), []);
      const send = send_last ? sendLast : sendOne;
      const [last] = await send(tx<{ x: string }[]>`
        insert into kept (n) values (${n}) returning pg_current_xact_id()::text as x`);
      t.equal(last?.x, first?.x);
      return n;
    });
  t.equal(await add(1, true), 1);
  t.strictSame(await readKept(other), [1]);
  await other`delete from kept`;
  t.equal(await add(2, false), 2);
  t.strictSame(await readKept(other), [2]);
});

t.test('a short transaction that fails leaves nothing, and its connection is good', async (t) => {
  const { sql, other } = await openPools(t);
  await t.rejects(
    inShort(sql, async (tx, sendLast) => {
      await tx`insert into kept (n) values (1)`;
      await sendLast(tx`insert into kept (n) values (1)`);
    }),
    { code: '23505' },
  );
  await t.rejects(
    inShort(sql, async (tx) => {
      await tx`insert into kept (n) values (2)`;
      throw new Error('by its own will');
    }),
    { message: 'by its own will' },
  );
  t.strictSame(await readKept(other), []);
  await sql`insert into kept (n) values (3)`;
  t.strictSame(await readKept(other), [3]);
});

t.test('transactions in a line follow each other, and one that fails fails alone', async (t) => {
  const { sql, other } = await openPools(t);
  /** The transactions that two statements, sent together, are in. */
  const addBoth = (one: number, two: number) =>
    inLine(sql, (tx) =>
      Promise.all(
        [one, two].map(async (n) => {
          const sent = tx<{ x: string }[]>`
            insert into kept (n) values (${n}) returning pg_current_xact_id()::text as x`.execute();
          return (await sent)[0]?.x;
        }),
      ),
    );
  const [first, failed, third] = await Promise.allSettled([
    addBoth(1, 2),
    addBoth(3, 3),
    addBoth(4, 5),
  ]);
  t.match(failed, { status: 'rejected', reason: { code: '23505' } });
  const told = [first, third].map((one) => (one.status === 'fulfilled' ? one.value : []));
  for (const [one, two] of told) t.equal(one, two, 'one transaction');
  t.not(told[0]?.[0], told[1]?.[0], 'another one');
  t.strictSame(await readKept(other), [1, 2, 4, 5]);
});

t.test('who waits for the one connection of a pool gets it in the end', async (t) => {
  const { sql, other } = await openPools(t);
  await Promise.all(
    [1, 2, 3, 4].map((n) =>
      inShort(sql, async (tx, sendLast) => {
        await sendLast(tx`insert into kept (n) values (${n})`);
      }),
    ),
  );
  t.strictSame(await readKept(other), [1, 2, 3, 4]);
});

t.test('of several idle connections the one that was used last is used next', async (t) => {
  const { database_url } = await openStores(t);
  const sql = openSql({ url: database_url, pool: 3, prepare: true, name: 'three' });
  t.teardown(() => sql.end({ timeout: 1 }));
  const ask = (db: Db) => db<{ pid: number }[]>`select pg_backend_pid() as pid`;
  // Each is held until all three are, so that three connections are open.
  let held = 0;
  let letGo = (): void => undefined;
  const three = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const hold = () =>
    inShort(sql, async (tx) => {
      const rows = await ask(tx);
      held += 1;
      if (held === 3) letGo();
      await three;
      return rows;
    });
  const all = await Promise.all([hold(), hold(), hold()]);
  t.equal(new Set(all.map(([row]) => row?.pid)).size, 3);

  const seen = new Set<number | undefined>();
  for (let n = 0; n < 4; n += 1) {
    const [alone] = await ask(sql);
    const [reserved] = await inShort(sql, (tx) => ask(tx));
    seen.add(alone?.pid).add(reserved?.pid);
  }
  t.equal(seen.size, 1);
});
