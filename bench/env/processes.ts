import { readdirSync, readFileSync } from 'node:fs';
import type { Sample } from '../frame/bench.js';

/** Process trees, CPU time and resident memory, read from /proc (Linux). */

const ticks_per_second = 100;

const read = (file: string): string => {
  try {
    return readFileSync(`/proc/${file}`, 'latin1');
  } catch {
    return '';
  }
};

/** The fields after the name, which stands in parentheses and may hold anything. */
const readStat = (pid: number): readonly number[] => {
  const text = read(`${pid}/stat`);
  return text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
};

/** The process and all below it. */
export const treeOf = (root: number): readonly number[] => {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map(all.map((pid) => [Number(pid), readStat(Number(pid))[1]]));
  const found = parents.has(root) ? [root] : [];
  for (const pid of found) {
    for (const [child, parent] of parents) if (parent === pid) found.push(child);
  }
  return found;
};

export const commandOf = (pid: number): string => read(`${pid}/cmdline`).replaceAll('\0', ' ');

export const rssMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(read(`${pid}/status`))?.[1] ?? 0) / 1_024;

/** Seconds of CPU of processes, with those of their children that have ended. */
const cpuOf = (pids: readonly number[]): number =>
  pids
    .flatMap((pid) => readStat(pid).slice(11, 15))
    .reduce((sum, ticks) => sum + (ticks || 0) / ticks_per_second, 0);

/** Seconds that all cores together were busy since the machine started. */
const busySeconds = (): number => {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = read('stat')
    .split('\n', 1)[0]!
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / ticks_per_second;
};

/** Groups of processes by name; no process is in two of them. */
export type Groups = Readonly<Record<string, () => readonly number[]>>;

/**
 * Measures from now on. Its end tells the CPU of each group in cores (`NAME_cores`), that of the
 * rest of the machine (`others_cores`), so that a disturbed round shows, and the peak memory of the
 * watched processes.
 */
export const startMeter = (groups: Groups, watched: () => readonly number[] = () => []) => {
  const look = () => {
    const used = Object.entries(groups).map(([name, pids]) => [name, cpuOf(pids())] as const);
    const known_s = used.reduce((sum, [, cpu_s]) => sum + cpu_s, cpuOf([process.pid]));
    return { used, others_s: busySeconds() - known_s, at_ms: performance.now() };
  };
  const before = look();
  // Listing processes reads all of /proc, which would disturb the measurement.
  const pids = watched();
  let rss_mb = 0;
  const lookAtMemory = (): void => {
    rss_mb = Math.max(rss_mb, ...pids.map(rssMb));
  };
  const timer = setInterval(lookAtMemory, 200);
  return {
    stop(): Sample {
      clearInterval(timer);
      lookAtMemory();
      const now = look();
      const seconds = (now.at_ms - before.at_ms) / 1_000;
      const cores = now.used.map(([name, cpu_s], n) => {
        return [`${name}_cores`, Math.max(0, cpu_s - before.used[n]![1]) / seconds] as const;
      });
      return {
        ...(pids.length === 0 ? {} : { rss_mb }),
        ...Object.fromEntries(cores),
        others_cores: Math.max(0, now.others_s - before.others_s) / seconds,
      };
    },
  };
};
