import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { Test } from 'tap';
import { childrenOf, commandOf, startTime } from '../../src/boot/processes.mjs';
import { makeDataFolder } from '../../src/process/embedded/data-dir.js';
import { type EmbeddedPostgres, startPostgres } from '../../src/process/embedded/postgres.js';
import { removePlace } from '../../src/process/embedded/postgres-home.js';
import type { EmbeddedStore } from '../../src/process/embedded/processes.js';
import { startRedis } from '../../src/process/embedded/redis.js';
import { makeTestFolder, openAdmin, removeTestFolder } from '../help/own-stores.js';
import type { Teardown } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const say = (): void => undefined;

const makeFolder = (t: Teardown): string => {
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  return folder;
};

/** Tests that do not break the stores share them, because creating a cluster takes seconds. */
const folder = makeFolder(t);

const queryOne = async (url: string, text: string): Promise<unknown> => {
  const sql = openAdmin(url);
  try {
    const [row] = await sql.unsafe(text);
    return row?.['answer'];
  } finally {
    await sql.end();
  }
};

const useRedis = async <T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> => {
  const redis = new Redis(url.replace(/^unix:/, ''), { commandTimeout: 5_000 });
  // A refusal also reaches the caller as the error of its command.
  redis.on('error', () => undefined);
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
};

const kill = async (store: EmbeddedStore): Promise<void> => {
  process.kill(store.pid, 'SIGKILL');
  await store.exited;
};

const startPg = async (t: Test, data_dir: string): Promise<EmbeddedPostgres> => {
  const pg = await startPostgres({ data_dir, say });
  t.teardown(() => pg.stop());
  return pg;
};

t.test('a half-made cluster does not matter', async (t) => {
  const half_made = path.join(folder, 'postgres.new-1');
  mkdirSync(half_made);
  writeFileSync(path.join(half_made, 'postgresql.conf'), 'half\n');
  const first = await startPg(t, folder);
  t.equal(existsSync(half_made), path.dirname(first.cluster) !== folder);
  t.equal(await queryOne(first.url, 'select current_user as answer'), 'forum');
  t.equal(await queryOne(first.admin_url, 'select current_user as answer'), 'postgres');
});

t.test('Postgres keeps its rows, address and settings over kill -9', async (t) => {
  const first = await startPg(t, folder);
  await queryOne(first.url, 'create table kept as select 42 as answer');
  await kill(first);
  const second = await startPg(t, folder);
  t.equal(second.url, first.url);
  t.not(second.pid, first.pid);
  t.equal(await queryOne(second.url, 'select answer from kept'), 42);
  const wanted = {
    data_checksums: 'on',
    fsync: 'on',
    full_page_writes: 'on',
    server_encoding: 'UTF8',
    synchronous_commit: 'on',
    TimeZone: 'UTC',
    listen_addresses: '',
  };
  for (const [name, value] of Object.entries(wanted)) {
    t.equal(await queryOne(second.url, `select current_setting('${name}') as answer`), value, name);
  }
  t.equal(await queryOne(second.url, 'select current_user as answer'), 'forum');
  const sockets = new URL(second.url).searchParams.get('host') ?? '';
  t.equal(statSync(sockets).mode & 0o777, 0o700, 'the folder of its socket');
});

t.test('a pid file that names a process of somebody else does not stop Postgres', async (t) => {
  const first = await startPg(t, folder);
  await kill(first);
  const pid_file = path.join(first.cluster, 'postmaster.pid');
  t.ok(existsSync(pid_file), 'kill -9 leaves the pid file');
  writeFileSync(pid_file, `${process.pid}\n${first.cluster}\n`);
  const second = await startPg(t, folder);
  t.equal(await queryOne(second.url, 'select 1 as answer'), 1);
  t.not(startTime(process.pid), null, 'this process was left alone');
});

t.test('Redis keeps its keys over kill -9 and starts empty on unreadable files', async (t) => {
  const folder = makeFolder(t);
  const first = await startRedis({ data_dir: folder, say });
  await useRedis(first.url, async (redis) => {
    await redis.set('kept', 'yes');
    t.equal((await redis.config('GET', 'maxmemory-policy'))[1], 'noeviction');
    t.equal((await redis.config('GET', 'appendonly'))[1], 'yes');
    t.equal((await redis.config('GET', 'appendfsync'))[1], 'everysec');
  });
  await kill(first);
  const second = await startRedis({ data_dir: folder, say });
  t.equal(await useRedis(second.url, (redis) => redis.get('kept')), 'yes');
  await kill(second);
  const files = path.join(folder, 'redis', 'appendonlydir');
  for (const name of readdirSync(files)) writeFileSync(path.join(files, name), '*3\r\n$3\r\nrubb');
  const lines: string[] = [];
  const third = await startRedis({ data_dir: folder, say: (line) => lines.push(line) });
  t.teardown(() => third.stop());
  t.match(lines.join(), /are deleted and created again/);
  t.equal(await useRedis(third.url, (redis) => redis.get('kept')), null);
});

t.test('Redis has its socket elsewhere where the path is too long for one', async (t) => {
  const folder = path.join(makeFolder(t), 'x'.repeat(100));
  makeDataFolder(folder);
  const redis = await startRedis({ data_dir: folder, say });
  t.teardown(() => redis.stop());
  const socket = redis.url.replace(/^unix:/, '');
  t.notOk(socket.startsWith(folder));
  t.equal(statSync(socket).mode & 0o777, 0o700);
  t.equal(await useRedis(redis.url, (client) => client.ping()), 'PONG');
});

interface Held {
  readonly owner: number;
  readonly postgres: number;
  readonly redis: number;
}

const holdStores = async (folder: string): Promise<Held> => {
  const file = fileURLToPath(new URL('./hold-stores.js', import.meta.url));
  const child = spawn(process.execPath, [file, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    return { owner: child.pid as number, ...JSON.parse(line) };
  }
  throw new Error('the stores did not start');
};

t.test('both stores end by themselves when the process that started them is killed', async (t) => {
  const { owner, postgres, redis } = await holdStores(folder);
  process.kill(owner, 'SIGKILL');
  await until('Postgres ends', () => startTime(postgres) === null);
  await until('Redis ends', () => startTime(redis) === null);
  t.same([postgres, redis].map(startTime), [null, null]);
});

t.test('a start takes over from stores that nobody stopped', async (t) => {
  const { owner, postgres, redis } = await holdStores(folder);
  const watchers = childrenOf(owner).filter((pid) => commandOf(pid).includes('store-watcher'));
  t.equal(watchers.length, 2);
  for (const pid of [...watchers, owner]) process.kill(pid, 'SIGKILL');
  await until('the watchers end', () => watchers.every((pid) => startTime(pid) === null));
  t.not(startTime(postgres), null, 'Postgres is left over');
  t.not(startTime(redis), null, 'Redis is left over');
  const pg = await startPg(t, folder);
  const own = await startRedis({ data_dir: folder, say });
  t.teardown(() => own.stop());
  t.equal(startTime(postgres), null);
  t.equal(startTime(redis), null);
  t.equal(await queryOne(pg.url, 'select 1 as answer'), 1);
});

t.test('root in a folder that nobody else may enter', async (t) => {
  if (process.getuid?.() !== 0) return t.pass('only root needs another user for Postgres');
  const outer = makeFolder(t);
  const folder = path.join(outer, 'data');
  makeDataFolder(folder);
  chmodSync(outer, 0o700);
  t.teardown(() => removePlace(folder));
  const first = await startPg(t, folder);
  await queryOne(first.url, 'create table kept as select 42 as answer');
  t.notOk(first.cluster.startsWith(outer), 'the cluster lies elsewhere');
  await first.stop();
  const second = await startPg(t, folder);
  t.equal(second.url, first.url);
  t.equal(await queryOne(second.url, 'select answer from kept'), 42);
});
