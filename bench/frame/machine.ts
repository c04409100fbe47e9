import { readFileSync } from 'node:fs';
import os from 'node:os';

/** Where a result was measured; figures of two machines are not compared. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly kernel: string;
  readonly node: string;
  readonly load_before: number;
  readonly at: string;
}

const cpuName = (): string => {
  const name = os.cpus()[0]?.model.trim() ?? '';
  if (name !== '' && name !== 'unknown') return name;
  const match = /model name\s*:\s*(.+)/.exec(readFileSync('/proc/cpuinfo', 'utf8'));
  return match?.[1] ?? 'unknown';
};

export const readMachine = (): Machine => ({
  cpu: cpuName(),
  cores: os.availableParallelism(),
  memory_gb: Math.round(os.totalmem() / 2 ** 30),
  kernel: os.release(),
  node: process.version,
  load_before: os.loadavg()[0] ?? 0,
  at: new Date().toISOString(),
});
