import { execFileSync } from 'node:child_process';
import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/**
 * The identity of a process, and lock files that name one. A pid alone says little: it is used
 * again after a reboot or in a new container, and a killed process may stay in the table unreaped.
 * So a lock holds the pid together with the start time of its process.
 */
const on_linux = process.platform === 'linux';

const readStat = (pid) => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the name in brackets and may itself hold blanks and brackets.
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
};

const ps = (...args) => {
  try {
    const stdio = ['ignore', 'pipe', 'ignore'];
    return execFileSync('ps', args, { encoding: 'utf8', stdio }).trim();
  } catch {
    return '';
  }
};

/** The start time of a running process, as text to compare; null when there is no such process. */
export const startTime = (pid) => {
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (!on_linux) return ps('-o', 'lstart=', '-p', String(pid)).replaceAll(' ', '_') || null;
  const stat = readStat(pid);
  return stat === null || stat[0] === 'Z' || stat[0] === 'X' ? null : stat[19];
};

/** CPU time that a process has used, as text to compare; null when it is not known. */
export const cpuTime = (pid) => {
  if (!on_linux) return ps('-o', 'time=', '-p', String(pid)) || null;
  const stat = readStat(pid);
  return stat === null ? null : String(Number(stat[11]) + Number(stat[12]));
};

/** The parent of a process; 0 when it is not known. */
export const parentOf = (pid) => {
  if (!on_linux) return Number(ps('-o', 'ppid=', '-p', String(pid))) || 0;
  return Number(readStat(pid)?.[1] ?? 0);
};

/** The command line of a process; empty when there is none. */
export const commandOf = (pid) => {
  if (!on_linux) return ps('-o', 'command=', '-p', String(pid)).split(' ').filter(Boolean);
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
  } catch {
    return [];
  }
};

const allProcesses = () =>
  (on_linux ? readdirSync('/proc') : ps('-axo', 'pid=').split('\n'))
    .filter((name) => /^\s*\d+\s*$/.test(name))
    .map(Number);

/** Pids of the running processes whose command line the test accepts, this process left out. */
export const findProcesses = (accepts) =>
  allProcesses().filter(
    (pid) => pid !== process.pid && accepts(commandOf(pid)) && startTime(pid) !== null,
  );

export const childrenOf = (parent) => allProcesses().filter((pid) => parentOf(pid) === parent);

const readOrNull = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

/** The pid in the text of a lock, when the process that wrote it still runs; else 0. */
const holderIn = (text) => {
  const [pid, started] = text.trim().split(' ');
  const now = startTime(Number(pid));
  return now !== null && now === started ? Number(pid) : 0;
};

/** The process that has the lock; 0 when it is free or was left behind. */
export const lockHolder = (file) => holderIn(readOrNull(file) ?? '');

/**
 * Takes the lock file, or names its holder: `{ holder, release }`, where `holder` is 0 when the
 * lock is ours now. A lock left behind by a dead process is taken over.
 */
export const takeLock = (file) => {
  const own = `${file}.${process.pid}`;
  const text = `${process.pid} ${startTime(process.pid)}\n`;
  writeFileSync(own, text);
  const release = () => {
    if (readOrNull(file) === text) rmSync(file, { force: true });
  };
  try {
    for (;;) {
      try {
        // A link appears whole or not at all, so nobody ever reads half a lock.
        linkSync(own, file);
        return { holder: 0, release };
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
      const found = readOrNull(file);
      // It was released just now.
      if (found === null) continue;
      const holder = holderIn(found);
      if (holder !== 0) return { holder, release: () => undefined };
      removeStale(file);
    }
  } finally {
    rmSync(own, { force: true });
  }
};

/**
 * Two may see the same stale lock, and the slower one must not remove the fresh lock of the
 * quicker one. So this is done under a lock of its own, where it is looked at once more: nobody
 * else can take it away between the look and the removal, and the dead do not take it again.
 */
const removeStale = (file) => {
  const { holder, release } = takeLock(`${file}.stale`);
  if (holder !== 0) return;
  const found = readOrNull(file);
  if (found !== null && holderIn(found) === 0) rmSync(file, { force: true });
  release();
};
