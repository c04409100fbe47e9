import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { project_root } from './own-stores.js';

/**
 * A Debian 13 file tree, for tests that need newer packages than this machine has. It is made once
 * by debootstrap (80 s, 340 MB) and kept below `.data`. Programs run in it by chroot.
 */

export const trixie = path.join(project_root, '.data', 'debian', 'trixie');

const packages = [
  ...['python3-build', 'python3-setuptools', 'python3-wheel', 'python3-venv'],
  ...['redis-tools', 'ca-certificates'],
];
/** The dependencies of the Python client, all from Debian. */
const dependencies = ['python3-httpx', 'python3-websockets'];

const succeeds = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args, { timeout: 600_000 }).status === 0;

const hasDebootstrap = (): boolean => existsSync('/usr/sbin/debootstrap');

const installDebootstrap = (): boolean => {
  const words = ['-o', 'DPkg::Lock::Timeout=60', 'install', '-y', '--no-install-recommends'];
  const get = () => succeeds('apt-get', ...words, 'debootstrap');
  return get() || (succeeds('apt-get', 'update') && get());
};

/** The mirror of Debian that apt uses here. */
const findMirror = (): string => {
  const words = ['indextargets', '--format', '$(SITE) $(ORIGIN) $(COMPONENT)'];
  const { stdout } = spawnSync('apt-get', words, { encoding: 'utf8' });
  const line = stdout.split('\n').find((one) => one.endsWith(' Debian main'));
  return line?.split(' ')[0] ?? 'http://deb.debian.org/debian';
};

const makeTree = (): boolean => {
  const fresh = `${trixie}.${process.pid}`;
  const include = `--include=${[...packages, ...dependencies].join(',')}`;
  mkdirSync(path.dirname(trixie), { recursive: true });
  const is_made = succeeds(
    'debootstrap',
    '--variant=minbase',
    include,
    'trixie',
    fresh,
    findMirror(),
  );
  // Another test file may have made it in the meantime.
  if (is_made && !existsSync(trixie)) renameSync(fresh, trixie);
  else rmSync(fresh, { recursive: true, force: true });
  return is_made;
};

/** For a test's `skip` option: false if the tree exists, otherwise the reason to skip. */
export const withoutTrixie = (): string | false => {
  if (existsSync(trixie)) return false;
  if (process.getuid?.() !== 0) return 'only root can make a tree of Debian 13';
  if (!hasDebootstrap() && !installDebootstrap()) return 'there is no debootstrap';
  return makeTree() ? false : 'debootstrap could not make a tree of Debian 13';
};

/** Runs a shell script in the tree and returns its output. Rejects if a command fails. */
export const runInTrixie = async (script: string): Promise<string> => {
  const { stdout } = await promisify(execFile)(
    '/usr/sbin/chroot',
    [trixie, '/bin/sh', '-ec', script],
    {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', HOME: '/root', LC_ALL: 'C.UTF-8' },
      timeout: 240_000,
    },
  );
  return stdout;
};
