import { pino } from 'pino';
import { t as root, type Test } from 'tap';
import { childrenOf } from '../../src/boot/processes.mjs';
import { migrate } from '../../src/db/migrate.js';
import { startPostgres } from '../../src/process/embedded/postgres.js';
import { type EmbeddedStore, signalProcess } from '../../src/process/embedded/processes.js';
import { emptyRedis, startRedis } from '../../src/process/embedded/redis.js';
import {
  closeRedis,
  connectRedis,
  deleteKeys,
  openRedis,
  type RedisClient,
} from '../../src/redis/client.js';
import {
  makeTemplate,
  openAdmin,
  startOwnStores,
  template_name,
  withDatabase,
} from './own-stores.js';
import { startWantedCluster } from './redis-cluster.js';

/** The part of tap that `openStores(t)` needs, so that it works with every kind of test. */
export type Teardown = Pick<Test, 'teardown'>;

export interface Stores {
  /** A migrated, otherwise empty database for this test alone. */
  readonly database_url: string;
  readonly redis_url: string;
  /** A value for REDIS_PREFIX that no other test uses. */
  readonly redis_prefix: string;
}

interface Servers {
  readonly admin_url: string;
  readonly redis_url: string;
  readonly template: string;
}

let opened = 0;

/**
 * A database and a Redis prefix for this test, removed after it. The servers belong to `npm test`.
 * A file that is run directly starts its own servers.
 */
export const openStores = async (t: Teardown): Promise<Stores> => {
  const servers = await findServers();
  opened += 1;
  const name = `t_${process.pid}_${opened}`;
  const admin = openAdmin(servers.admin_url);
  await admin.unsafe(`create database ${name} template ${servers.template}`);
  await admin.end();
  const redis_prefix = `t_${process.pid}_${opened}`;
  t.teardown(async () => {
    await dropDatabase(servers.admin_url, name);
    await dropKeys(servers.redis_url, redis_prefix);
  });
  return {
    database_url: withDatabase(servers.admin_url, name),
    redis_url: servers.redis_url,
    redis_prefix,
  };
};

const findServers = (): Promise<Servers> => {
  const { TEST_DATABASE_URL, TEST_REDIS_URL, TEST_TEMPLATE } = process.env;
  if (TEST_DATABASE_URL !== undefined && TEST_REDIS_URL !== undefined) {
    return Promise.resolve({
      admin_url: TEST_DATABASE_URL,
      redis_url: TEST_REDIS_URL,
      template: TEST_TEMPLATE ?? template_name,
    });
  }
  own_servers ??= startServers();
  return own_servers;
};

let own_servers: Promise<Servers> | undefined;

/** The servers stop last: tap runs later teardowns first, so all tests have cleaned up by then. */
const startServers = async (): Promise<Servers> => {
  const own = await startOwnStores(false);
  root.teardown(own.stop);
  const { admin_url } = own.postgres;
  await makeTemplate(admin_url);
  return { admin_url, redis_url: own.redis.url, template: template_name };
};

const dropDatabase = async (admin_url: string, name: string): Promise<void> => {
  const admin = openAdmin(admin_url);
  await admin.unsafe(`drop database if exists ${name} with (force)`);
  await admin.end();
};

/** The test's own connection, whichever kind of Redis is used. */
export const openTestRedis = async (t: Teardown, url: string): Promise<RedisClient> => {
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url, name: 'test', log, command_timeout_ms: 5_000 });
  t.teardown(() => closeRedis(redis));
  await connectRedis(redis);
  return redis;
};

const dropKeys = async (url: string, prefix: string): Promise<void> => {
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url, name: 'test', log, command_timeout_ms: 5_000 });
  await connectRedis(redis);
  await deleteKeys(redis, prefix);
  closeRedis(redis);
};

export type PrivateStores = Awaited<ReturnType<typeof startPrivateStores>>;

/** Separate servers for this test, with a migrated database. `durable` for tests that kill them. */
export const startPrivateStores = async (
  t: Teardown,
  { durable = true }: { readonly durable?: boolean } = {},
) => {
  const own = await startOwnStores(durable);
  const { folder } = own;
  const options = { data_dir: folder, say: () => undefined };
  const postgres = makePrivate(own.postgres, () => startPostgres({ ...options, durable }));
  const server = makePrivate(own.redis, async (empty) => {
    if (empty) emptyRedis(folder);
    return startRedis(options);
  });
  const cluster = await startWantedCluster();
  t.teardown(async () => {
    await cluster?.stop();
    for (const one of [postgres, server]) await one.end();
    await own.stop();
  });
  await migrate(own.postgres.url);
  return {
    /** Holds both servers' files, so that the whole service can be started on them. */
    folder,
    database_url: own.postgres.url,
    redis_url: cluster?.url ?? own.redis.url,
    redis_prefix: 'pf',
    postgres,
    redis: cluster ?? server,
  };
};

/** A server that a test can kill and start again. */
const makePrivate = (first: EmbeddedStore, start: (empty: boolean) => Promise<EmbeddedStore>) => {
  let store = first;
  // Pausing only the postmaster would leave its backends running.
  const signalAll = (signal: NodeJS.Signals): void => {
    for (const pid of [store.pid, ...childrenOf(store.pid)]) signalProcess(pid, signal);
  };
  const end = async (): Promise<void> => {
    signalAll('SIGCONT');
    await store.stop();
  };
  return {
    /** Pid of the server that is running or ran last. */
    get pid() {
      return store.pid;
    },
    url: first.url,
    /** Kills it with SIGKILL. Resolves when it is gone. */
    async kill(): Promise<void> {
      process.kill(store.pid, 'SIGKILL');
      await store.exited;
    },
    /** Pauses it: it stays alive but does not answer until `resume`. */
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    end,
    /** Starts it again at the same address. `empty` deletes its data (Redis only). */
    async restart({ empty = false } = {}): Promise<void> {
      await end();
      store = await start(empty);
    },
  };
};
