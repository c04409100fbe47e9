import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { readOrEmpty } from './processes.js';

/** Small files that are there whole or not at all, whenever the process is killed. */

export const syncFolder = (folder: string): void => {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

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

/** The secret in the file; made now when the file is missing or too short to be one. */
export const keepSecret = (file: string): string => {
  const found = readOrEmpty(file).trim();
  if (found.length >= 32) return found;
  const made = makeSecret();
  writeWhole(file, `${made}\n`);
  return made;
};
