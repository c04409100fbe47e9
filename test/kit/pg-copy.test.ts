import { t } from 'tap';
import { openAdmin } from '../help/own-stores.js';
import { openStores } from '../help/stores.js';

t.test('a COPY is read to its end, however its last rows fill the stream', async (t) => {
  const sql = openAdmin((await openStores(t)).database_url);
  t.teardown(() => sql.end());
  await sql`create table kept as select n, repeat('x', 60) as x from generate_series(1, 2000) n`;
  await sql.begin(async (tx) => {
    for (let wanted = 100; wanted < 1_100; wanted += 1) {
      const query = tx.unsafe(`copy (select * from kept limit ${wanted}) to stdout`);
      let rows = 0;
      for await (const bytes of await query.readable()) {
        for (const byte of bytes) if (byte === 10) rows += 1;
      }
      if (rows !== wanted) t.fail(`${rows} of ${wanted}`);
    }
  });
  t.pass('none of them waits for ever');
});
