import path from 'node:path';
import { lockHolder } from '../../boot/processes.mjs';
import { ConfigError, readConfig } from '../../config.js';
import { readStatus } from '../../embedded/data-dir.js';

const places = (): { readonly DATA_DIR: string; readonly PORT: number } => {
  try {
    return readConfig();
  } catch (error) {
    // Whatever is wrong with the settings of the service does not keep a tool from another one.
    if (error instanceof ConfigError) return { DATA_DIR: '.data', PORT: 8080 };
    throw error;
  }
};

/** Where the service of this folder listens: while it runs what it says, else what `PORT` says. */
export const localUrl = (): string => {
  const { DATA_DIR, PORT } = places();
  const { state, url } = readStatus(DATA_DIR);
  const runs = state === 'running' && lockHolder(path.join(DATA_DIR, 'service.lock')) !== 0;
  return runs && url !== undefined ? url : `http://127.0.0.1:${PORT === 0 ? 8080 : PORT}`;
};
