import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { project_root } from './own-stores.js';

/** Debian programs that tests use if they are installed or available with apt-get. */

const run = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args, { timeout: 120_000 }).status === 0;

/** Unpacks a Debian package and its dependencies into a folder, without installing anything. */
const fetchPackage = (name: string, folder: string): boolean => {
  const archives = path.join(folder, 'archives');
  mkdirSync(path.join(archives, 'partial'), { recursive: true });
  const options = ['-o', `Dir::Cache::archives=${archives}`, '-o', 'Debug::NoLocking=true'];
  const words = ['-y', '--no-install-recommends', '--download-only', ...options, name];
  const get = () => run('apt-get', 'install', ...words);
  if (!get() && !(run('apt-get', 'update') && get())) return false;
  const files = readdirSync(archives).filter((file) => file.endsWith('.deb'));
  return files.every((file) => run('dpkg', '-x', path.join(archives, file), folder));
};

/** Path of a program that is installed or unpacked below `.data`. Null if it cannot be obtained. */
export const findProgram = (name: string) => {
  for (const folder of [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin']) {
    const command = path.join(folder, name);
    if (folder !== '' && existsSync(command)) return { command, env: process.env };
  }
  const kept = path.join(project_root, '.data', 'debian', name);
  const fresh = `${kept}.${process.pid}`;
  if (!existsSync(kept) && fetchPackage(name, fresh)) renameSync(fresh, kept);
  rmSync(fresh, { recursive: true, force: true });
  const places = ['usr/sbin', 'usr/bin'].map((folder) => path.join(kept, folder, name));
  const command = places.find((file) => existsSync(file));
  const libraries = path.join(kept, 'usr', 'lib');
  const folders = existsSync(libraries) ? readdirSync(libraries) : [];
  const LD_LIBRARY_PATH = folders.map((folder) => path.join(libraries, folder)).join(':');
  return command === undefined ? null : { command, env: { ...process.env, LD_LIBRARY_PATH } };
};
