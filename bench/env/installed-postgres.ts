import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { probeSql, type Sql } from '../../src/db/client.js';
import { makeSecret } from '../../src/process/embedded/data-dir.js';
import { chooseAccount, runAs } from '../../src/process/embedded/postgres-home.js';
import { freePort } from './service.js';
import { openPool } from './stores.js';

/** A Postgres of the machine with the settings that it has when it was installed. */
export interface InstalledPostgres {
  readonly pid: number;
  /** Connection of the superuser. */
  readonly admin: Sql;
  /** Connection of the role `forum`, which owns its databases and may nothing else. */
  urlOf(database: string): string;
  stop(): Promise<void>;
}

const packages = '/usr/lib/postgresql';

/** The programs of the newest one, or null where there is none. */
export const findInstalled = (): string | null => {
  const versions = existsSync(packages) ? readdirSync(packages).map(Number) : [];
  const newest = versions.sort((a, b) => b - a)[0];
  const bin = path.join(packages, String(newest), 'bin');
  return existsSync(path.join(bin, 'initdb')) ? bin : null;
};

const untilAnswers = async (admin: Sql): Promise<void> => {
  const give_up_ms = performance.now() + 30_000;
  for (;;) {
    try {
      return await probeSql(admin);
    } catch (error) {
      if (performance.now() > give_up_ms) throw error;
      await delay(50);
    }
  }
};

export const startInstalled = async (bin: string): Promise<InstalledPostgres> => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-bench-postgres-'));
  const account = chooseAccount();
  const password = makeSecret(24);
  const password_file = path.join(folder, 'password');
  const cluster = path.join(folder, 'cluster');
  writeFileSync(password_file, password, { mode: 0o600 });
  for (const place of [folder, password_file]) {
    if (account !== null) chownSync(place, account.uid, account.gid);
  }
  const make = [path.join(bin, 'initdb'), `--pgdata=${cluster}`, '--username=postgres'];
  const rest = ['--encoding=UTF8', '--auth=scram-sha-256', `--pwfile=${password_file}`];
  const made = runAs([...make, ...rest], { account });
  if (!made.ok) throw new Error(`initdb: ${made.output}`);
  const port = await freePort();
  const places = ['-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${folder}`];
  const args = ['-D', cluster, '-p', String(port), ...places];
  const server = spawn(path.join(bin, 'postgres'), args, {
    ...{ cwd: '/', stdio: 'ignore' as const },
    ...(account ?? {}),
  });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const urlFor = (role: string, database: string): string =>
    `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
  const admin = openPool(urlFor('postgres', 'postgres'), 'bench');
  await untilAnswers(admin);
  await admin.unsafe(`create role forum login password '${password}'`);
  return {
    pid: server.pid ?? 0,
    admin,
    urlOf: (database) => urlFor('forum', database),
    async stop() {
      await admin.end({ timeout: 5 });
      server.kill('SIGINT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
