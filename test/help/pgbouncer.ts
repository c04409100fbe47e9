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

/** PgBouncer with the configuration of `examples/pgbouncer`, before an embedded Postgres. */

const program = (() => {
  let found: ReturnType<typeof findProgram> | undefined;
  return () => {
    found ??= findProgram('pgbouncer');
    return found;
  };
})();

/** Why tests with it are left out here, as an option of a test; false where they are not. */
export const withoutPgBouncer = (): string | false =>
  program() === null && 'pgbouncer is neither installed nor to be had with apt-get';

/** `npm run faults -- pgbouncer`: services that tests start go to Postgres by it. */
export const is_pooled = process.env['FAULT_PGBOUNCER'] === 'true';

/** As it stands there but for addresses and who is let in. */
const readConfiguration = (folder: string, port: number, users: string): string =>
  readFileSync(path.join(project_root, 'examples', 'pgbouncer', 'pgbouncer.ini'), 'utf8')
    .replace('host=10.0.0.5', `host=${folder}`)
    .replace('10.0.0.4\nlisten_port = 6432', `127.0.0.1\nlisten_port = ${port}`)
    .replace('scram-sha-256', 'trust')
    .replace('/etc/pgbouncer/userlist.txt', users);

export type PgBouncer = Awaited<ReturnType<typeof startPgBouncer>>;

/** `database_url` is that of an embedded Postgres, whose account runs PgBouncer as well. */
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
    /** In order, as by its package: whatever is under way is cut off. */
    restart: () => replace(() => server.stop()),
    /** kill -9, and a new one. */
    kill: () => replace(() => signalProcess(server.pid, 'SIGKILL')),
  };
};

/** The address by which a service of a test is to reach the database. */
export const poolerOf = async (t: Teardown, database_url: string): Promise<string> =>
  is_pooled ? (await startPgBouncer(t, database_url)).url : database_url;

export type KeptPostgres = Awaited<ReturnType<typeof keepPostgres>>;

/**
 * PgBouncer before a durable Postgres below a folder, which is started again whenever it ends, until
 * `release`.
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
    /** It may end from now on. */
    release(): void {
      is_kept = false;
    },
    /** Both run again, after a `release` and the end of both. */
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
