import { readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Finds problems that would always keep the service from starting on this machine, even before any
 * installation or build. Each function returns null, or the problem and its remedy in a sentence.
 */

/** The oldest glibc that the uWebSockets.js binary runs on, by major version of Node. */
const least_glibc = { 20: '2.27', 22: '2.38', 24: '2.38' };
const majors = Object.keys(least_glibc);

const isBelow = (version, least) => {
  const [major, minor] = version.split('.').map(Number);
  const [least_major, least_minor] = least.split('.').map(Number);
  return major < least_major || (major === least_major && minor < least_minor);
};

/** Returns Node's own report of this machine. Without the network part it takes a millisecond. */
export const readMachine = () => {
  process.report.excludeNetwork = true;
  const { header, userLimits } = process.report.getReport();
  return {
    platform: process.platform,
    node: process.versions.node,
    /** Undefined if the system has another C library, as Alpine has. */
    glibc: header.glibcVersionRuntime,
    /** How many files and sockets one process can have open at most. */
    descriptors: Number(userLimits?.open_files?.soft ?? Number.POSITIVE_INFINITY),
  };
};

/** Says why there is no engine binary for this combination of Node and C library. */
export const engineProblem = ({ platform, node, glibc }) => {
  const [major] = node.split('.');
  const supported = `use Node ${majors.slice(0, -1).join(', ')} or ${majors.at(-1)}`;
  if (!majors.includes(major) || isBelow(node, '20.11')) {
    return `Node ${node} is not supported: ${supported}${major === '20' ? ' (20.11 or newer)' : ''}.`;
  }
  if (platform !== 'linux') return null;
  if (glibc === undefined) {
    return 'This system has no glibc (it may be Alpine): use Debian, Ubuntu or Fedora.';
  }
  const least = least_glibc[major];
  if (!isBelow(glibc, least)) return null;
  return isBelow(glibc, least_glibc[20])
    ? `glibc ${glibc} is too old: use a system with ${least} or newer, such as Debian 13.`
    : `Node ${major} needs glibc ${least} and this system has ${glibc}: use Node 20, or a newer system such as Debian 13.`;
};

const least_descriptors = 1_024;

export const descriptorProblem = ({ descriptors }) =>
  descriptors >= least_descriptors
    ? null
    : `A process may open ${descriptors} files here and the service needs ${least_descriptors}: run \`ulimit -n 65536\` first.`;

/** The address has no path: links append theirs, and cookies and sockets need the whole host. */
export const publicUrlProblem = (url) => {
  if (!URL.canParse(url)) return null;
  const { pathname, search, hash, username, password } = new URL(url);
  return pathname.replace(/\/+$/, '') + search + hash + username + password === ''
    ? null
    : 'The address must have only a scheme, a host and a port, such as https://forum.example.org. The service needs its own host name.';
};

const readOrEmpty = (file) => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
};

/** Postgres cannot read another major version's files. `version` is the embedded server's. */
export const clusterProblem = (cluster, version) => {
  const found = readOrEmpty(path.join(cluster, 'PG_VERSION'));
  const [major] = version.split('.');
  // If the version is unreadable, Postgres itself refuses the folder.
  if (!/^\d+(\.\d+)?$/.test(found) || found.length > 9) return null;
  if (major === '' || found === major) return null;
  return (
    `${cluster} was created by Postgres ${found}, and this program has Postgres ${major}. Make a backup with the ` +
    'program that created it (npm run backup), move that folder away, start and stop this program, and ' +
    'restore the backup (npm run restore).'
  );
};

/** Reads a setting under any of the names that src/config.ts reads; '' if it is not set. */
const readSetting = (env, name) => {
  const given = env[`PF_${name}`] || env[name];
  const file = env[`PF_${name}_FILE`] || env[`${name}_FILE`];
  return given || (file ? readOrEmpty(file) : '');
};

const problemOfPublicUrl = (env) => {
  const problem = publicUrlProblem(readSetting(env, 'PUBLIC_URL'));
  return problem === null ? null : `PUBLIC_URL: ${problem}`;
};

const problemOfData = (env, embedded_postgres) => {
  if (readSetting(env, 'DATABASE_URL') !== '') return null;
  const data_dir = readSetting(env, 'DATA_DIR') || '.data';
  const outside = readOrEmpty(path.join(data_dir, 'postgres.place'));
  return clusterProblem(outside || path.join(data_dir, 'postgres'), embedded_postgres);
};

/** Says why `start` cannot work, as far as this is known without reading the settings. */
export const startProblem = (env, embedded_postgres, machine = readMachine()) =>
  descriptorProblem(machine) ?? problemOfPublicUrl(env) ?? problemOfData(env, embedded_postgres);
