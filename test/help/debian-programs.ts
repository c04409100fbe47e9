import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { project_root } from './own-stores.js';

/**
 * Programs of Debian that a test runs. One that is not installed is fetched with what it needs and
 * unpacked below `.data`: nothing is installed, and no service of the system is started.
 */
export interface DebianProgram {
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
}

const run = (command: string, ...args: readonly string[]) =>
  spawnSync(command, args, { encoding: 'utf8', timeout: 120_000 });

const fetchPackage = (name: string, folder: string): boolean => {
  const archives = path.join(folder, 'archives');
  mkdirSync(path.join(archives, 'partial'), { recursive: true });
  const options = ['-o', `Dir::Cache::archives=${archives}`, '-o', 'Debug::NoLocking=true'];
  const get = () =>
    run('apt-get', 'install', '-y', '--no-install-recommends', '--download-only', ...options, name);
  if (get().status !== 0) {
    run('apt-get', 'update');
    if (get().status !== 0) return false;
  }
  const files = readdirSync(archives).filter((file) => file.endsWith('.deb'));
  return files.every((file) => run('dpkg', '-x', path.join(archives, file), folder).status === 0);
};

/** Null where it is neither installed nor to be had. */
export const findDebianProgram = (name: string): DebianProgram | null => {
  for (const folder of [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin']) {
    const command = path.join(folder, name);
    if (folder !== '' && existsSync(command)) return { command, env: process.env };
  }
  const kept = path.join(project_root, '.data', 'debian', name);
  if (!existsSync(kept)) {
    const fresh = `${kept}.${process.pid}`;
    const is_there = fetchPackage(name, fresh);
    if (is_there) renameSync(fresh, kept);
    else rmSync(fresh, { recursive: true, force: true });
  }
  const command = ['usr/sbin', 'usr/bin']
    .map((folder) => path.join(kept, folder, name))
    .find((file) => existsSync(file));
  if (command === undefined) return null;
  const libraries = path.join(kept, 'usr', 'lib');
  const folders = existsSync(libraries)
    ? readdirSync(libraries).map((folder) => path.join(libraries, folder))
    : [];
  return { command, env: { ...process.env, LD_LIBRARY_PATH: folders.join(':') } };
};
