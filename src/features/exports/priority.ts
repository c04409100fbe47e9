import { readFile } from 'node:fs/promises';
import os from 'node:os';
import type { Sql } from '../../kit/pg/client.js';
import { type Backend, readBackend } from './backend-store.js';

/**
 * Exports take what others leave: their thread, and the process of Postgres that works for them
 * where it is one of this machine, have a low priority. Nothing depends on it. On Linux only, where
 * threads have priorities of their own and processes can be told apart by their titles.
 */

/** Enough that others are served first; work that holds a lock for a moment still gets on. */
export const niceness = 10;

/** The calling thread alone. */
export const lowerThread = (): void => {
  try {
    if (process.platform === 'linux') os.setPriority(niceness);
  } catch {
    // It goes on as it is.
  }
};

const isLocal = (database_url: string): boolean => {
  const { hostname, searchParams } = new URL(database_url);
  const host = searchParams.get('host') ?? hostname;
  return host.startsWith('/') || ['localhost', '127.0.0.1', '[::1]'].includes(host);
};

/** What stands in the title of the process: nobody else has the same port. */
const nameOf = ({ user_name, database, host, port }: Backend): string =>
  ` ${user_name} ${database} ${port === null ? '[local]' : `${host}(${port})`} `;

/** A number says little: it may belong to a process of another machine, or of another container. */
const isItself = async (backend: Backend): Promise<boolean> => {
  const title = await readFile(`/proc/${backend.pid}/cmdline`, 'latin1');
  return title.startsWith('postgres: ') && title.includes(nameOf(backend));
};

/** The backend of the only connection; asked again for every export, as that may be a new one. */
export const lowerBackend = async (sql: Sql, database_url: string): Promise<void> => {
  if (process.platform !== 'linux' || !isLocal(database_url)) return;
  try {
    const backend = await readBackend(sql);
    if (backend !== undefined && (await isItself(backend))) os.setPriority(backend.pid, niceness);
  } catch {
    // It goes on as it is.
  }
};
