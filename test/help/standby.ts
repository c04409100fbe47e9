import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { migrate } from '../../src/db/migrate.js';
import { startPostgres } from '../../src/process/embedded/postgres.js';
import { findPostgresHome, notePlace, ownerOf } from '../../src/process/embedded/postgres-home.js';
import type { EmbeddedStore } from '../../src/process/embedded/processes.js';
import { makeTestFolder, openAdmin, removeTestFolder } from './own-stores.js';
import type { Teardown } from './stores.js';
import { until } from './until.js';

/** A primary and a standby that streams from it, both real and durable. */

const options = (folder: string) => ({ data_dir: folder, say: () => undefined, durable: true });

const folderOf = (url: string): string => new URL(url).searchParams.get('host') ?? '';

/** Adds settings that the cluster reads at its next start. */
const configure = (cluster: string, lines: readonly string[]): void =>
  appendFileSync(path.join(cluster, 'postgresql.auto.conf'), `${lines.join('\n')}\n`);

const write = (file: string, text: string): void => {
  writeFileSync(file, text);
  const owner = ownerOf(path.dirname(file));
  if (owner !== null) chownSync(file, owner.uid, owner.gid);
};

/** Lets standbys connect. By default, the embedded server refuses them. */
const letStandbysIn = (cluster: string): void => {
  const file = path.join(cluster, 'hba-standby.conf');
  write(file, 'local all all trust\nlocal replication all trust\n');
  configure(cluster, [`hba_file = '${file}'`]);
};

/** Copies a stopped cluster into a standby that follows it. */
const copyAsStandby = (first: string, url: string, folder: string): void => {
  const { cluster } = findPostgresHome(folder);
  execFileSync('cp', ['-a', first, cluster]);
  notePlace(folder, cluster);
  write(path.join(cluster, 'standby.signal'), '');
  const address = `host=${folderOf(url)} port=5432 user=postgres application_name=second`;
  configure(cluster, [
    `primary_conninfo = '${address}'`,
    // How often the standby looks for a primary that has disappeared.
    "wal_retrieve_retry_interval = '200ms'",
  ]);
  letStandbysIn(cluster);
};

const makeServer = (folder: string, first: EmbeddedStore & { readonly admin_url: string }) => {
  let store = first;
  const admin = openAdmin(first.admin_url);
  return {
    url: first.url,
    folder,
    /** Superuser connection. */
    admin,
    kill: async (): Promise<void> => {
      process.kill(store.pid, 'SIGKILL');
      await store.exited;
    },
    /** Restarts cleanly, as an operator does. Work in progress is cut off. */
    restart: async (): Promise<void> => {
      await store.stop();
      store = await startPostgres(options(folder));
    },
    end: async (): Promise<void> => {
      await admin.end({ timeout: 1 });
      await store.stop();
      removeTestFolder(folder);
    },
  };
};

export type Pair = Awaited<ReturnType<typeof startPair>>;

/** With `synchronous`, a commit waits until it is on the standby's disk. */
export const startPair = async (t: Teardown, { synchronous = false } = {}) => {
  const [first, second] = [makeTestFolder(), makeTestFolder()];
  const made = await startPostgres(options(first));
  await migrate(made.url);
  await made.stop();
  copyAsStandby(made.cluster, made.url, second);
  letStandbysIn(made.cluster);
  const primary = makeServer(first, await startPostgres(options(first)));
  const standby = makeServer(second, await startPostgres(options(second)));
  t.teardown(() => Promise.all([primary.end(), standby.end()]));
  const { admin } = primary;
  await until('the standby streams', async () => {
    const rows = await admin`select from pg_stat_replication where state = 'streaming'`;
    return rows.length === 1;
  });
  if (synchronous) {
    await admin`alter system set synchronous_standby_names = '*'`;
    await admin`select pg_reload_conf()`;
  }
  const both = `${folderOf(primary.url)},${folderOf(standby.url)}`;
  return {
    primary,
    standby,
    /** Names both hosts. Connections go to the primary unless the URL says otherwise. */
    url: `postgres://forum@localhost:5432/forum?host=${both}`,
  };
};
