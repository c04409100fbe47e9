import { execFileSync } from 'node:child_process';
import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Identifies processes, and keeps lock files that name a process. A pid alone is not enough: it may
 * be reused after a reboot or in a new container, and a killed process may stay in the process
 * table. So a lock holds the pid together with the start time of its process.
 */
const on_linux = process.platform === 'linux';

const readStat = (pid) => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is a name in parentheses. The name may itself contain spaces and
    // parentheses.
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

/** Returns the start time of a process, as text to compare; null if it is not running. */
export const startTime = (pid) => {
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (!on_linux) return ps('-o', 'lstart=', '-p', String(pid)).replaceAll(' ', '_') || null;
  const stat = readStat(pid);
  return stat === null || stat[0] === 'Z' || stat[0] === 'X' ? null : stat[19];
};

/** Returns the CPU time of a process, as text to compare; null if unknown. */
export const cpuTime = (pid) => {
  if (!on_linux) return ps('-o', 'time=', '-p', String(pid)) || null;
  const stat = readStat(pid);
  return stat === null ? null : String(Number(stat[11]) + Number(stat[12]));
};

/** Returns the parent of a process; 0 if unknown. */
export const parentOf = (pid) => {
  if (!on_linux) return Number(ps('-o', 'ppid=', '-p', String(pid))) || 0;
  return Number(readStat(pid)?.[1] ?? 0);
};

/** Returns the command line of a process; empty if there is no such process. */
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

/** Returns the pids of running processes whose command line is accepted, except this process. */
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

/** Returns the pid in the text of a lock if the process that wrote it is still running, else 0. */
const holderIn = (text) => {
  const [pid, started] = text.trim().split(' ');
  const now = startTime(Number(pid));
  return now !== null && now === started ? Number(pid) : 0;
};

/** Returns the pid of the process that has the lock; 0 if the lock is free or was left behind. */
export const lockHolder = (file) => holderIn(readOrNull(file) ?? '');

/**
 * Takes the lock file, or names its holder: `{ holder, release }`. `holder` is 0 if the lock is now
 * ours. A lock left behind by a dead process is taken over.
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
        // A link to a finished file appears all at once, so no process ever reads half a lock.
        linkSync(own, file);
        return { holder: 0, release };
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
      const found = readOrNull(file);
      // The holder has just released the lock, so try again.
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
 * Two processes may see the same stale lock, and the slower one must not remove the fresh lock of
 * the faster one. So a process needs a second lock to remove a stale one, and reads the file again
 * once it has that lock. Only the holder of the second lock can then remove the file.
 */
const removeStale = (file) => {
  const { holder, release } = takeLock(`${file}.stale`);
  if (holder !== 0) return;
  const found = readOrNull(file);
  if (found !== null && holderIn(found) === 0) rmSync(file, { force: true });
  release();
};
