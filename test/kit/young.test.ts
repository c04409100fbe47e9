import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { t } from 'tap';
import { closeRedis, connectRedis, openRedis } from '../../src/kit/redis/client.js';
import { openStores } from '../help/stores.js';
import type { Aged } from '../help/young-child.js';

const run = promisify(execFile);
const flags = ['--expose-gc', '--max-semi-space-size=1'];
const child = new URL('../help/young-child.js', import.meta.url).pathname;

const measure = async (store: string, url: string): Promise<Aged> => {
  const { stdout } = await run(process.execPath, [...flags, child, store, url]);
  return JSON.parse(stdout) as Aged;
};

t.test('what is read from a store dies young', async (t) => {
  const { database_url, redis_url } = await openStores(t);
  const stores = [
    ['postgres', database_url],
    ['redis', redis_url],
    ['stream', redis_url],
  ] as const;
  for (const [store, url] of stores) {
    const { read, grown, full } = await measure(store, url);
    t.equal(read, 60_000_000, store);
    t.equal(full, 0, `${store}: no collection of all objects hides what grew old`);
    t.ok(grown < 6_000_000, `${store}: old objects grew by ${grown} bytes`);
  }
});

t.test('commands of Redis answer as before', async (t) => {
  const { redis_url } = await openStores(t);
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: redis_url, name: 'young', log, command_timeout_ms: 5_000 });
  await connectRedis(redis);
  t.teardown(() => closeRedis(redis));
  await redis.hset('young:h', { a: '1', b: 'é' });
  t.strictSame({ ...(await redis.hgetall('young:h')) }, { a: '1', b: 'é' });
  await t.rejects(redis.lrange('young:h', 0, 1), { message: /WRONGTYPE/ });
  const told = new Promise((resolve, reject) => {
    redis.hget('young:h', 'b', (error, value) => (error ? reject(error) : resolve(value)));
  });
  t.equal(await told, 'é');
  const [first, second] =
    (await redis.pipeline().hget('young:h', 'a').llen('young:h').exec()) ?? [];
  t.strictSame(first, [null, '1']);
  t.match(second?.[0], { message: /WRONGTYPE/ });
});
