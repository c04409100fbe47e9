import { readFileSync } from 'node:fs';
import type { Teardown } from '../help/stores.js';

/**
 * Growth of process memory: the resident set of each process, every few seconds. A replacement
 * process is a separate series, which counts after a warm-up.
 */

const sample_ms = 5_000;
const warm_up_min = 5;
const page_mb = 4_096 / 2 ** 20;

interface Sample {
  /** Minutes since the start of watching. */
  readonly min: number;
  readonly mb: number;
}

export interface Growth {
  readonly role: string;
  /** Number of processes that lived beyond their warm-up. */
  readonly series: number;
  /** Minutes for which these processes were watched in total, without the warm-up. */
  readonly watched_min: number;
  readonly max_mb: number;
  /** MB per minute, by least squares over all series, each with its own level. */
  readonly slope: number;
  /** MB at each minute of the longest-lived process. */
  readonly longest: readonly number[];
}

const readMegabytes = (pid: number): number | null => {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * page_mb;
  } catch {
    return null;
  }
};

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

/** Sums the deviations of each series from its own means, so the slope is common to all. */
export const measureGrowth = (role: string, all: readonly (readonly Sample[])[]): Growth => {
  const warm = all
    .map((series) => series.filter(({ min }) => min >= (series[0]?.min ?? 0) + warm_up_min))
    .filter((series) => series.length > 2);
  let products = 0;
  let squares = 0;
  for (const series of warm) {
    const [min_mean, mb_mean] = [mean(series.map((s) => s.min)), mean(series.map((s) => s.mb))];
    for (const { min, mb } of series) {
      products += (min - min_mean) * (mb - mb_mean);
      squares += (min - min_mean) ** 2;
    }
  }
  const spans = warm.map((series) => (series.at(-1)?.min ?? 0) - (series[0]?.min ?? 0));
  return {
    role,
    series: warm.length,
    slope: squares === 0 ? 0 : products / squares,
    watched_min: spans.reduce((sum, one) => sum + one, 0),
    max_mb: Math.max(0, ...all.flat().map(({ mb }) => mb)),
    longest: (all.toSorted((a, b) => b.length - a.length)[0] ?? [])
      .filter(({ min }, n, samples) => Math.floor(min) > Math.floor(samples[n - 1]?.min ?? -1))
      .map(({ mb }) => mb),
  };
};

/** Watches the processes of each role until the test ends. */
export const watchMemory = (
  t: Teardown,
  pidsOf: Readonly<Record<string, () => readonly number[]>>,
) => {
  const began_ms = performance.now();
  const roles = new Map<string, Map<number, Sample[]>>();
  const sample = (): void => {
    const min = (performance.now() - began_ms) / 60_000;
    for (const [role, find] of Object.entries(pidsOf)) {
      const known = roles.get(role) ?? new Map<number, Sample[]>();
      roles.set(role, known);
      for (const pid of find()) {
        const mb = readMegabytes(pid);
        if (mb !== null) known.set(pid, [...(known.get(pid) ?? []), { min, mb }]);
      }
    }
  };
  const timer = setInterval(sample, sample_ms);
  t.teardown(() => clearInterval(timer));
  return (): readonly Growth[] =>
    [...roles].map(([role, series]) => measureGrowth(role, [...series.values()]));
};
