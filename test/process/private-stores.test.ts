import { Redis } from 'ioredis';
import { t } from 'tap';
import { openAdmin } from '../help/own-stores.js';
import { startPrivateStores } from '../help/stores.js';
import { until } from '../help/until.js';

t.test('private stores can be killed, paused and started again, Redis also empty', async (t) => {
  const stores = await startPrivateStores(t);
  const { postgres, redis } = stores;
  const client = new Redis(stores.redis_url.replace(/^unix:/, ''), { commandTimeout: 300 });
  client.on('error', () => undefined);
  t.teardown(() => client.disconnect());
  await client.set('kept', '1');
  redis.pause();
  await t.rejects(client.get('kept'), /timed out/);
  redis.resume();
  t.equal(await client.get('kept'), '1');
  const old_pid = redis.pid;
  await redis.kill();
  await redis.restart();
  t.not(redis.pid, old_pid);
  t.equal(await client.get('kept'), '1');
  await redis.restart({ empty: true });
  t.equal(await client.get('kept'), null);

  const sql = openAdmin(stores.database_url);
  t.teardown(() => sql.end());
  await sql`create table kept as select 42 as answer`;
  await postgres.kill();
  // A server process that is answering ends only after that.
  const isAway = (): Promise<boolean> =>
    sql`select 1`.then(
      () => false,
      () => true,
    );
  await until('nobody answers', isAway);
  await postgres.restart();
  const [row] = await sql`select answer from kept`;
  t.equal(row?.['answer'], 42);
  const [table] = await sql`select count(*)::int as n from questions`;
  t.equal(table?.['n'], 0, 'the database is migrated');
});
