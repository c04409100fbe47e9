import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  truncateSync,
} from 'node:fs';
import path from 'node:path';
import type { Say } from './processes.js';

/** The log files of a data folder: opened for processes that append to them, and kept small. */

const log_bytes = 16 * 1024 * 1024;
const every_ms = 5_000;

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/**
 * Copies a log that has grown large to `<name>.1` and empties it. Servers and role processes have
 * it open and only append, so they go on in the same file; nothing comes between the end of the
 * copy and the emptying. On a full disk the copy ends early: a log that cannot be kept must not
 * keep the space that the database needs.
 */
export const rotateLog = (file: string, say: Say, most_bytes = log_bytes): void => {
  if (sizeOf(file) <= most_bytes) return;
  try {
    copyFileSync(file, `${file}.1`);
  } catch {
    say(`The log ${file} was emptied: its disk has no room for ${file}.1.`);
  }
  truncateSync(file);
};

export const openLog = (file: string): number => {
  mkdirSync(path.dirname(file), { recursive: true });
  return openSync(file, 'a', 0o600);
};

export const closeLog = (log: number): void => closeSync(log);

export const keepLogsSmall = (folder: string, say: Say): (() => void) => {
  const look = (): void => {
    try {
      for (const name of readdirSync(folder)) {
        if (name.endsWith('.log')) rotateLog(path.join(folder, name), say);
      }
    } catch {
      // Looked at again soon; nothing depends on it.
    }
  };
  look();
  const timer = setInterval(look, every_ms);
  timer.unref();
  return () => clearInterval(timer);
};
