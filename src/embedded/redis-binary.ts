import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import type { Say } from './processes.js';

/**
 * Finds a Redis server. Debian's package redis-tools holds it under the name redis-check-rdb: one
 * program, which is the server when it is called `redis-server`, and which starts no system
 * service. Where nothing is found, that package is installed if this can be done without asking.
 */
export interface RedisBinary {
  readonly command: string;
  /** What the program has to be called. */
  readonly argv0: string;
  readonly version: string;
}

const oldest_major = 7;
const names: readonly (readonly [command: string, argv0: string])[] = [
  ['redis-server', 'redis-server'],
  ['valkey-server', 'valkey-server'],
  ['redis-check-rdb', 'redis-server'],
  ['valkey-check-rdb', 'valkey-server'],
];
const advice = 'Install Redis 7 or newer (Debian: apt-get install redis-tools) or set REDIS_URL.';

export const findRedis = (say: Say): RedisBinary => {
  const found = lookUp();
  if (found !== null) return found;
  const installer = findInstaller();
  if (installer === null) throw new Error(`No redis-server was found. ${advice}`);
  say('Installing redis-tools with apt-get, because there is no redis-server …');
  const problem = install(installer);
  const installed = lookUp();
  if (installed === null)
    throw new Error(`redis-server could not be installed. ${advice} ${problem}`);
  return installed;
};

/** The first server on the PATH that is new enough. */
export const lookUp = (): RedisBinary | null => {
  for (const [command, argv0] of names) {
    const { stdout } = spawnSync(command, ['--version'], { argv0, encoding: 'utf8' });
    const version = /server v=(\d+\.\d+\.\d+)/.exec(stdout ?? '')?.[1];
    if (version !== undefined && Number.parseInt(version, 10) >= oldest_major) {
      return { command, argv0, version };
    }
  }
  return null;
};

const succeeds = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** The words before apt-get, or null where it cannot run without asking for a password. */
export const findInstaller = (): readonly string[] | null => {
  if (!succeeds('apt-get', '--version')) return null;
  if (process.getuid?.() === 0) return [];
  return succeeds('sudo', '-n', 'true') ? ['sudo', '-n'] : null;
};

const package_lists = '/var/lib/apt/lists';

/** Empty when all went well, else the last line that apt-get said. */
const install = (before: readonly string[]): string => {
  const has_lists =
    existsSync(package_lists) && readdirSync(package_lists).some((name) => /Packages/.test(name));
  const apt = (...args: string[]): string => {
    const words = [...before, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args];
    const result = spawnSync(words[0] as string, words.slice(1), {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 300_000,
    });
    if (result.status === 0) return '';
    const output = result.error?.message ?? `${result.stdout}${result.stderr}`;
    return `(${output.trim().split('\n').at(-1)})`;
  };
  const lock = ['-o', 'DPkg::Lock::Timeout=60'];
  const get = () => apt('install', '-y', '--no-install-recommends', ...lock, 'redis-tools');
  if (has_lists && get() === '') return '';
  return apt('update', ...lock) || get();
};
