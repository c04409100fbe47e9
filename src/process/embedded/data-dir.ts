import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { takeLock } from '../../boot/processes.mjs';
import { writeWhole } from './files.js';
import { makeDataFolder } from './postgres.js';

/**
 * DATA_DIR belongs to one running service at a time: two on the same cluster would end each
 * other's Postgres as a left-over. The claim ends with the process, however it ends.
 */
export interface DataDirClaim {
  /** Says to other starts how far this one is. */
  note(status: ServiceStatus): void;
  release(): void;
}

export interface ServiceStatus {
  readonly state: 'starting' | 'running' | 'stopping';
  readonly url?: string;
}

const patience_ms = { starting: 2_000, running: 2_000, stopping: 25_000 } as const;

const statusFile = (data_dir: string): string => path.join(data_dir, 'status.json');

/** What the service that has this DATA_DIR said last; it may have been killed since. */
export const readStatus = (data_dir: string): ServiceStatus => {
  try {
    return JSON.parse(readFileSync(statusFile(data_dir), 'utf8'));
  } catch {
    return { state: 'starting' };
  }
};

/** Waits for a service that is about to stop; refuses when one goes on running. */
export const claimDataDir = async (data_dir: string): Promise<DataDirClaim> => {
  makeDataFolder(data_dir);
  mkdirSync(path.join(data_dir, 'log'), { recursive: true });
  const started = Date.now();
  for (;;) {
    const { holder, release } = takeLock(path.join(data_dir, 'service.lock'));
    if (holder === 0) {
      const note = (status: ServiceStatus): void => {
        try {
          writeWhole(statusFile(data_dir), `${JSON.stringify(status)}\n`, 0o644);
        } catch {
          // Only other starts read it; a folder that is full or gone must not keep this one going.
        }
      };
      note({ state: 'starting' });
      return { note, release };
    }
    const { state, url } = readStatus(data_dir);
    if (Date.now() - started > patience_ms[state]) {
      const where = url === undefined ? '' : ` at ${url}`;
      throw new Error(
        `The service already runs on ${data_dir}${where} (process ${holder}): stop it first, or ` +
          'set another DATA_DIR.',
      );
    }
    await wait(50);
  }
};
