import { openSql } from '../../src/db/client.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** A stream of a COPY's rows is complete or ends with an error, and harms no other query. */

const { database_url } = await openStores(t);
const sql = openSql({ url: database_url, pool: 2, prepare: true, name: 'copy' });
t.teardown(() => sql.end({ timeout: 1 }));
await sql`create table kept as select n, repeat('x', 60) as x from generate_series(1, 200000) n`;

const countRows = async (chunks: AsyncIterable<Buffer>): Promise<number> => {
  let rows = 0;
  for await (const bytes of chunks) for (const byte of bytes) if (byte === 10) rows += 1;
  return rows;
};

const copying = "state = 'active' and query like 'copy%' and pid <> pg_backend_pid()";
const isGone = async (): Promise<boolean> =>
  (await sql.unsafe(`select from pg_stat_activity where ${copying}`)).length === 0;

t.test('a COPY is read to its end, however its last rows fill the stream', async (t) => {
  await sql.begin(async (tx) => {
    for (let wanted = 100; wanted < 1_100; wanted += 1) {
      const rows = await countRows(
        tx.copyOut(`copy (select * from kept limit ${wanted}) to stdout`),
      );
      if (rows !== wanted) t.fail(`${rows} of ${wanted}`);
    }
  });
  for (const wanted of [0, 1, 999, 200_000]) {
    const stream = sql.copyOut(`copy (select * from kept limit ${wanted}) to stdout`);
    t.equal(await countRows(stream), wanted);
  }
});

t.test('what goes before a copy is seen by it', async (t) => {
  const stream = sql.copyOut(
    `copy (select n from kept where n <= current_setting('copy.most')::integer) to stdout`,
    { mode: 'read only', before: (tx) => tx`select set_config('copy.most', ${'3'}, true)` },
  );
  t.equal(await countRows(stream), 3);
});

t.test('a reader that goes away ends the COPY, and the pool goes on', async (t) => {
  for (let round = 0; round < 6; round += 1) {
    for await (const bytes of sql.copyOut('copy kept to stdout')) {
      t.ok(bytes.length > 0);
      break;
    }
  }
  await until('Postgres has ended them', () => isGone());
  t.same(await Promise.all([sql`select 1 as n`, sql`select 2 as n`]), [[{ n: 1 }], [{ n: 2 }]]);
});

t.test('a reader that takes nothing is cut', async (t) => {
  const stream = sql.copyOut('copy kept to stdout', { idle_ms: 300 });
  stream.once('readable', () => undefined);
  const error = await new Promise((resolve) => stream.once('error', resolve));
  t.match(error, { code: 'CONNECTION_SILENT' });
  await until('Postgres has ended it', () => isGone());
});

t.test('a reader that is slow and goes on is not cut', async (t) => {
  const stream = sql.copyOut('copy (select * from kept limit 20000) to stdout', { idle_ms: 300 });
  let rows = 0;
  for await (const bytes of stream) {
    rows += await countRows([bytes] as never);
    // Tests must not sleep, so Postgres sleeps instead.
    await sql`select pg_sleep(0.03)`;
  }
  t.equal(rows, 20_000);
});

t.test('a COPY whose connection is lost, and one that fails, say so', async (t) => {
  const lost = countRows(sql.copyOut('copy (select n, pg_sleep(0.01) from kept) to stdout'));
  const failed = t.rejects(lost, { code: /^(CONNECTION_LOST|ECONNRESET|57P01)$/ });
  await until('it is under way', async () => !(await isGone()));
  await sql.unsafe(`select pg_terminate_backend(pid) from pg_stat_activity where ${copying}`);
  await failed;
  const wrong = countRows(sql.copyOut('copy (select 1 / (n - 5000) from kept) to stdout'));
  await t.rejects(wrong, { code: '22012' });
  await t.rejects(countRows(sql.copyOut('copy nothing to stdout')), { code: '42P01' });
  t.same(await sql`select 1 as n`, [{ n: 1 }]);
});
