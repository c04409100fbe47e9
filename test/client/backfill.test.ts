import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { createClient, type Gap, type LogEvent } from '../../src/client/node.js';
import { openSql } from '../../src/db/client.js';
import { startApp } from '../help/app.js';
import { range } from '../help/hub.js';
import { makeLogWriter } from '../help/log.js';
import { openStores } from '../help/stores.js';
import { until } from '../help/until.js';

/** More than the service gives in one replay, and its beginning is gone. */
const length = 10_800;
const gone = 500;

const stores = await openStores(t);
const sql = openSql({ url: stores.database_url, pool: 1, prepare: true, name: 'test' });
t.teardown(() => sql.end({ timeout: 1 }));
const redis = new Redis(stores.redis_url.replace(/^unix:/, ''));
t.teardown(() => redis.disconnect());
const log = makeLogWriter(sql, redis, stores.redis_prefix);
for (const _ of range(1, 6)) await log.record(length / 6);
await sql`delete from events where "offset" <= ${gone}`;
const app = await startApp(t, { stores, roles: ['api'] });

const start = (t: Test) => {
  const client = createClient({ base_url: app.url });
  t.teardown(() => client.close());
  return client;
};

t.test('what is too much for a replay is read over HTTP, then it goes on live', async (t) => {
  const client = start(t);
  const gaps: Gap[] = [];
  const offsets: number[] = [];
  const lives: string[] = [];
  client.stream({
    topics: ['all'],
    after: 0,
    backfill: true,
    buffer: 150,
    onItem: ({ offset }: LogEvent) => void offsets.push(offset),
    onGap: (gap) => void gaps.push(gap),
    onStatus: (status) => {
      if (status.status === 'live') lives.push(status.result);
    },
  });
  await until('it goes on', () => offsets.length > length / 2);
  await log.record(10);
  await until('all came', () => offsets.length >= length - gone + 10);
  t.strictSame(offsets, range(gone + 1, length + 10));
  t.match(gaps, [{ topic: 'all', after: 0, until: gone, reason: 'expired' }]);
  t.equal(gaps.length, 1);
  t.notOk(lives.includes('gap'), 'no replay was asked for in vain again');

  const careless = client.stream({ topics: ['all'], after: 0, backfill: true });
  await t.rejects(careless.next(), { name: 'StreamGap', gap: { until: gone } });
  const whole = client.stream({ topics: ['all'], after: gone, backfill: true });
  for (const offset of range(gone + 1, gone + 300)) {
    const { value } = await whole.next();
    if (value?.offset !== offset) t.fail(`${value?.offset} instead of ${offset}`);
  }
  t.equal(whole.cursor, gone + 299);
  await whole.return();
});

t.test('without that, the reader is told where the rest is, or nothing more comes', async (t) => {
  const client = start(t);
  const head = log.entries.length;
  const gaps: Gap[] = [];
  const told = client.stream({
    topics: ['all'],
    after: gone,
    onGap: (gap) => void gaps.push(gap),
  });
  await until('it is told', () => gaps.length > 0);
  await log.record(1);
  t.match(await told.next(), { value: { offset: head + 1 } });
  t.match(gaps, [{ topic: 'all', after: gone, until: head, reason: 'expired' }]);
  t.match(gaps[0]?.backfill, /^\/api\/events\?/);
  await t.rejects(client.stream({ topics: ['all'], after: gone }).next(), { name: 'StreamGap' });
});
