import { readdirSync, readFileSync } from 'node:fs';

/** What /proc says about processes (Linux): trees, CPU time, resident memory. */

const ticks_per_second = 100;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** Seconds of CPU, with those of its children that have ended and been waited for. */
  readonly cpu_s: number;
}

const readStat = (pid: number): Stat | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name stands in parentheses and may hold anything; the fields follow the last one.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    const cpu_s = ticks / ticks_per_second;
    return { pid, parent: Number(fields[1]), cpu_s };
  } catch {
    return undefined;
  }
};

const allStats = (): readonly Stat[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? []);

/** The process and everything below it. */
export const treeOf = (root: number): readonly number[] => {
  const stats = allStats();
  const found = stats.some((stat) => stat.pid === root) ? [root] : [];
  for (const pid of found) {
    found.push(...stats.filter((stat) => stat.parent === pid).map((stat) => stat.pid));
  }
  return found;
};

export const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
};

export const rssMb = (pid: number): number => {
  try {
    const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
    return Number(match?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
};

const cpuOf = (pids: readonly number[]): ReadonlyMap<number, number> =>
  new Map(pids.map((pid) => [pid, readStat(pid)?.cpu_s ?? 0]));

const total = (cpu: ReadonlyMap<number, number>): number =>
  [...cpu.values()].reduce((sum, cpu_s) => sum + cpu_s, 0);

/** What a process that ended had used before is now part of its parent's figure, so sums do. */
const usedSince = (before: ReadonlyMap<number, number>, now: ReadonlyMap<number, number>): number =>
  Math.max(0, total(now) - total(before));

/** Seconds that all cores together were busy since the machine started. */
const busySeconds = (): number => {
  const fields = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]?.split(/\s+/) ?? [];
  const [user, nice, system, , , irq, softirq] = fields.slice(1).map(Number);
  const ticks = [user, nice, system, irq, softirq].reduce<number>((sum, n) => sum + (n ?? 0), 0);
  return ticks / ticks_per_second;
};

/** Groups of processes by name; looked up again at the end, so that new ones count as well. */
export type Groups = Readonly<Record<string, () => readonly number[]>>;

export interface Meter {
  /**
   * CPU of each group as cores (seconds of CPU per second); `others_cores` is what the rest of the
   * machine used, so that a disturbed round shows; `rss_mb` is the peak of the watched processes.
   */
  stop(): Readonly<Record<string, number>>;
}

const lookAt = (groups: Groups) => {
  const by_name = Object.entries(groups).map(([name, pids]) => [name, cpuOf(pids())] as const);
  const known = new Map(
    [process.pid, ...by_name.flatMap(([, cpu]) => [...cpu.keys()])].map(
      (pid) => [pid, readStat(pid)?.cpu_s ?? 0] as const,
    ),
  );
  return { by_name: new Map(by_name), known, busy_s: busySeconds(), at_ms: performance.now() };
};

/** Measures from now on. */
export const startMeter = (groups: Groups, watched: () => readonly number[]): Meter => {
  const before = lookAt(groups);
  let peak_mb = 0;
  // Listing processes reads all of /proc, which would be felt by what is measured.
  let pids = watched();
  const look = (): void => {
    for (const pid of pids) peak_mb = Math.max(peak_mb, rssMb(pid));
  };
  const timer = setInterval(look, 200);
  return {
    stop() {
      clearInterval(timer);
      pids = watched();
      look();
      const now = lookAt(groups);
      const seconds = (now.at_ms - before.at_ms) / 1000;
      const cores = [...now.by_name].map(([name, cpu]) => {
        const used = usedSince(before.by_name.get(name) ?? new Map(), cpu);
        return [`${name}_cores`, used / seconds] as const;
      });
      const others = now.busy_s - before.busy_s - usedSince(before.known, now.known);
      return {
        ...(peak_mb === 0 ? {} : { rss_mb: peak_mb }),
        ...Object.fromEntries(cores),
        others_cores: Math.max(0, others) / seconds,
      };
    },
  };
};
