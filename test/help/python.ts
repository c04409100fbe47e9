import { spawnSync } from 'node:child_process';

/** Debian's Python with the packages that the Python client and its tests need. */

export const python = '/usr/bin/python3';

const succeeds = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args, { timeout: 240_000 }).status === 0;

const hasPackages = (): boolean => succeeds(python, '-c', 'import httpx, websockets, mypy');

const installPackages = (): boolean => {
  const words = ['-o', 'DPkg::Lock::Timeout=60', 'install', '-y', '--no-install-recommends'];
  const get = () =>
    succeeds('apt-get', ...words, 'python3-httpx', 'python3-websockets', 'python3-mypy', 'mypy');
  return process.getuid?.() === 0 && (get() || (succeeds('apt-get', 'update') && get()));
};

/** False if Python and the packages are ready, otherwise the reason for a test's `skip` option. */
export const withoutPython = (): string | false =>
  hasPackages() || (installPackages() && hasPackages())
    ? false
    : 'there is no python3 with httpx, websockets and mypy';
