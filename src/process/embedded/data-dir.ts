import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { takeLock } from '../../boot/processes.mjs';
import { CannotStart } from '../../kit/service.js';

/** The folder DATA_DIR: its lock, its small files, and its logs. */

/** Shows a line to the person at the terminal. */
export type Say = (line: string) => void;

/** Creates folders one by one, because below /proc Node's `recursive` option never returns. */
const makeFolders = (folder: string): void => {
  if (existsSync(folder)) return;
  makeFolders(path.dirname(folder));
  mkdirSync(folder);
};

/** Creates the data folder. If it is new, lets the account of Postgres pass through it. */
export const makeDataFolder = (data_dir: string): void => {
  try {
    if (!existsSync(data_dir)) {
      makeFolders(data_dir);
      chmodSync(data_dir, 0o711);
    }
    makeFolders(path.join(data_dir, 'log'));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CannotStart(`DATA_DIR ${data_dir} cannot be used (${why}). Set another one.`);
  }
};

export type DataDirClaim = Awaited<ReturnType<typeof claimDataDir>>;

export interface ServiceStatus {
  readonly state: 'starting' | 'running' | 'stopping';
  readonly url?: string;
}

const patience_ms = { starting: 2_000, running: 2_000, stopping: 25_000 } as const;

const statusFile = (data_dir: string): string => path.join(data_dir, 'status.json');

/** Returns the last status of the service in this DATA_DIR, which may have been killed since. */
export const readStatus = (data_dir: string): ServiceStatus => {
  try {
    return JSON.parse(readFileSync(statusFile(data_dir), 'utf8'));
  } catch {
    return { state: 'starting' };
  }
};

/**
 * DATA_DIR belongs to one running service at a time: two services would kill each other's Postgres
 * as a leftover. Waits for a service that is stopping, and throws if it keeps running. The claim
 * ends when the process ends. `note` writes the status that later attempts to start a service read.
 */
export const claimDataDir = async (data_dir: string) => {
  makeDataFolder(data_dir);
  const started = Date.now();
  for (;;) {
    const { holder, release } = takeLock(path.join(data_dir, 'service.lock'));
    if (holder === 0) {
      const note = (status: ServiceStatus): void => {
        try {
          writeWhole(statusFile(data_dir), `${JSON.stringify(status)}\n`, 0o644);
        } catch {
          // Only other attempts to start read it. A full or missing folder must not stop this one.
        }
      };
      note({ state: 'starting' });
      return { note, release };
    }
    const { state, url } = readStatus(data_dir);
    if (Date.now() - started > patience_ms[state]) {
      const where = url === undefined ? '' : ` at ${url}`;
      throw new Error(
        `The service is already running on ${data_dir}${where} (process ${holder}). ` +
          'Stop it first, or set another DATA_DIR.',
      );
    }
    await wait(50);
  }
};

export const readOrEmpty = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

/** Writes the names in a folder to disk, so that they survive a loss of power. */
export const syncFolder = (folder: string): void => {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/** Writes a small file completely or not at all, even if the process is killed. */
export const writeWhole = (file: string, text: string, mode = 0o600): void => {
  const temporary = `${file}.${process.pid}.new`;
  rmSync(temporary, { force: true });
  const handle = openSync(temporary, 'wx', mode);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
  syncFolder(path.dirname(file));
};

export const makeSecret = (bytes = 32): string => randomBytes(bytes).toString('base64url');

/** Returns the secret in the file. Makes one if the file is missing or too short. */
export const keepSecret = (file: string): string => {
  const found = readOrEmpty(file).trim();
  if (found.length >= 32) return found;
  const made = makeSecret();
  writeWhole(file, `${made}\n`);
  return made;
};

const log_bytes = 16 * 1024 * 1024;
const every_ms = 5_000;

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/**
 * If a log has grown large, copies it to `<name>.1` and empties it at once. Servers and role
 * processes have the log open and only append, so they go on in the same file. On a full disk the
 * copy ends early. The log is emptied all the same, because the database needs the space.
 */
export const rotateLog = (file: string, say: Say, max_bytes = log_bytes): void => {
  if (sizeOf(file) <= max_bytes) return;
  try {
    copyFileSync(file, `${file}.1`);
  } catch {
    say(`The log ${file} was emptied, because its disk has no room for ${file}.1.`);
  }
  truncateSync(file);
};

export const openLog = (file: string): number => {
  mkdirSync(path.dirname(file), { recursive: true });
  return openSync(file, 'a', 0o600);
};

export const keepLogsSmall = (folder: string, say: Say): (() => void) => {
  const look = (): void => {
    try {
      for (const name of readdirSync(folder)) {
        if (name.endsWith('.log')) rotateLog(path.join(folder, name), say);
      }
    } catch {
      // The next check comes soon, and nothing depends on a single check.
    }
  };
  look();
  const timer = setInterval(look, every_ms);
  timer.unref();
  return () => clearInterval(timer);
};
