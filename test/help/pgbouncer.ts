import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startPostgres } from '../../src/process/embedded/postgres.js';
import {
  pickPort,
  probePort,
  signalProcess,
  startServer,
} from '../../src/process/embedded/processes.js';
import { findProgram } from './debian.js';
import { project_root } from './own-stores.js';
import type { Teardown } from './stores.js';

/** PgBouncer with the configuration of `examples/pgbouncer`, in front of an embedded Postgres. */

const program = (() => {
  let found: ReturnType<typeof findProgram> | undefined;
  return () => {
    found ??= findProgram('pgbouncer');
    return found;
  };
})();

/** A test's `skip` option: the reason if PgBouncer cannot run on this machine, otherwise false. */
export const withoutPgBouncer = (): string | false =>
  program() === null && 'pgbouncer is neither installed nor to be had with apt-get';

/** Set by `npm run faults -- pgbouncer`: the tests' services connect to Postgres through it. */
export const is_pooled = process.env['FAULT_PGBOUNCER'] === 'true';

/** Reads the example configuration, with other addresses and users. */
const readConfiguration = (folder: string, port: number, users: string): string =>
  readFileSync(path.join(project_root, 'examples', 'pgbouncer', 'pgbouncer.ini'), 'utf8')
    .replace('host=10.0.0.5', `host=${folder}`)
    .replace('10.0.0.4\nlisten_port = 6432', `127.0.0.1\nlisten_port = ${port}`)
    .replace('scram-sha-256', 'trust')
    .replace('/etc/pgbouncer/userlist.txt', users);

export type PgBouncer = Awaited<ReturnType<typeof startPgBouncer>>;

/** `database_url` is the URL of an embedded Postgres, whose system account also runs PgBouncer. */
export const startPgBouncer = async (t: Teardown, database_url: string) => {
  const found = program();
  if (found === null) throw new Error('there is no pgbouncer');
  const folder = new URL(database_url).searchParams.get('host') ?? '';
  const { uid, gid } = statSync(folder);
  const port = await pickPort();
  const write = (name: string, text: string): string => {
    const file = path.join(folder, `pgbouncer-${port}.${name}`);
    writeFileSync(file, text);
    chownSync(file, uid, gid);
    return file;
  };
  const users = write('users', '"forum" ""\n');
  const file = write('ini', readConfiguration(folder, port, users));
  const start = async () => {
    const started = await startServer({
      command: found.command,
      args: ['-q', file],
      options: { uid, gid, env: found.env },
      log_file: write('log', ''),
      ready_ms: 10_000,
      stop_steps: [
        ['SIGTERM', 2_000],
        ['SIGKILL', 2_000],
      ],
      isReady: async () => (await probePort(port)) !== null,
    });
    if (typeof started === 'string') throw new Error(`PgBouncer does not start: ${started}`);
    return started;
  };
  let server = await start();
  t.teardown(() => server.stop());
  const replace = async (end: () => unknown): Promise<void> => {
    await end();
    await server.exited;
    server = await start();
  };
  return {
    url: `postgres://forum@127.0.0.1:${port}/forum`,
    /** Restarts cleanly, as the Debian package does. Work in progress is cut off. */
    restart: () => replace(() => server.stop()),
    /** Kills PgBouncer with SIGKILL and starts it again. */
    kill: () => replace(() => signalProcess(server.pid, 'SIGKILL')),
  };
};

/** URL through which a test's service should reach the database. */
export const poolerOf = async (t: Teardown, database_url: string): Promise<string> =>
  is_pooled ? (await startPgBouncer(t, database_url)).url : database_url;

export type KeptPostgres = Awaited<ReturnType<typeof keepPostgres>>;

/**
 * PgBouncer in front of a durable Postgres in a folder. Postgres is restarted whenever it ends,
 * until `release`.
 */
export const keepPostgres = async (t: Teardown, folder: string) => {
  const start = () => startPostgres({ data_dir: folder, say: () => undefined });
  let is_kept = true;
  let store = await start();
  const startAgain = async (): ReturnType<typeof start> => {
    for (;;) {
      try {
        return await start();
      } catch (error) {
        if (!is_kept) throw error;
        await wait(500);
      }
    }
  };
  const keep = async (): Promise<void> => {
    while (is_kept) {
      await store.exited;
      if (is_kept) store = await startAgain();
    }
  };
  let keeping = keep();
  const pgbouncer = await startPgBouncer(t, store.url);
  return {
    url: pgbouncer.url,
    /** From now on, Postgres is not restarted when it ends. */
    release(): void {
      is_kept = false;
    },
    /** After a `release`, starts Postgres and PgBouncer again once Postgres has ended. */
    async start(): Promise<void> {
      if (is_kept) return;
      await keeping;
      is_kept = true;
      store = await start();
      keeping = keep();
      await pgbouncer.restart();
    },
  };
};
