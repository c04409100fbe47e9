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

/** Reads the numbers after the process name, which is in parentheses and may be any text. */
const readStat = (pid: number): readonly number[] => {
  const text = read(`${pid}/stat`);
  return text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
};

/** The ids of the process and of all its descendants. */
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

/** Resident memory of the largest of these processes. */
export const rssMb = (pids: readonly number[]): number =>
  Math.max(
    ...pids.map((pid) => Number(/^VmRSS:\s+(\d+) kB/m.exec(read(`${pid}/status`))?.[1] ?? 0)),
  ) / 1_024;

/** CPU seconds of the processes, including their children that have ended. */
const cpuOf = (pids: readonly number[]): number =>
  pids
    .flatMap((pid) => readStat(pid).slice(11, 15))
    .reduce((sum, ticks) => sum + (ticks || 0) / ticks_per_second, 0);

/** Seconds that all cores together were busy since boot: everything except idle and I/O wait. */
const busySeconds = (): number => {
  const [user, nice, system, , , irq, softirq] = read('stat').split(/\s+/).slice(1).map(Number);
  return (user! + nice! + system! + irq! + softirq!) / ticks_per_second;
};

/** The process ids of each part of a target: `api`, `background`, `postgres` and `redis`. */
export type PartPids = Readonly<Record<string, readonly number[]>>;

/**
 * Starts measuring. `stop` returns the CPU use (`cores`) and peak memory of the watched processes.
 * Its `others_cores`, the CPU use of everything unrelated to the bench, reveals a disturbed round.
 * `cpu` returns microseconds of CPU time per operation, by part and in total.
 */
export const startMeter = (
  watched: () => readonly number[] = () => [],
  parts: () => PartPids = () => ({}),
) => {
  // Listed once, because listing processes reads all of /proc and would disturb the measurement.
  const pids = watched();
  const begun = Object.entries(parts()).map(([name, of]) => ({ name, of, used_s: cpuOf(of) }));
  const look = () => ({
    used_s: cpuOf(pids),
    others_s: busySeconds() - cpuOf(treeOf(process.pid)),
    at_ms: performance.now(),
  });
  const before = look();
  let rss_mb = 0;
  const lookAtMemory = (): void => {
    rss_mb = Math.max(rss_mb, rssMb(pids));
  };
  const timer = setInterval(lookAtMemory, 200);
  return {
    cpu(operations: number): Sample {
      const each = begun.map(({ name, of, used_s }) => {
        return [`us_${name}`, ((cpuOf(of) - used_s) * 1e6) / operations] as const;
      });
      const us_all = each.reduce((sum, [, us]) => sum + us, 0);
      return each.length === 0 ? {} : { ...Object.fromEntries(each), us_all };
    },
    stop(): Sample {
      clearInterval(timer);
      lookAtMemory();
      const now = look();
      const seconds = (now.at_ms - before.at_ms) / 1_000;
      const others_cores = Math.max(0, now.others_s - before.others_s) / seconds;
      const cores = (now.used_s - before.used_s) / seconds;
      const of_watched = pids.length === 0 ? {} : { rss_mb, cores };
      return { ...of_watched, others_cores };
    },
  };
};
