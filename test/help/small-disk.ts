import { spawnSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export interface SmallDiskOptions {
  readonly folder: string;
  readonly megabytes: number;
}

const mount = ({ folder, megabytes }: SmallDiskOptions): boolean => {
  const options = `size=${megabytes}m,mode=711`;
  return spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'small-disk', folder]).status === 0;
};

/** A test's `skip` option: the reason if small disks cannot be made here, otherwise false. */
export const withoutSmallDisks = (): string | false => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'small-disk-'));
  const is_made = mount({ folder, megabytes: 1 });
  if (is_made) unmountSmallDisks(folder);
  rmdirSync(folder);
  return is_made ? false : 'a small disk cannot be made here: mount needs root';
};

export type SmallDisk = ReturnType<typeof mountSmallDisk>;

/** A disk of a few megabytes in memory that a test can fill. Removed with the test's folder. */
export const mountSmallDisk = (options: SmallDiskOptions) => {
  const { folder } = options;
  mkdirSync(folder, { recursive: true });
  if (!mount(options)) throw new Error('a small disk cannot be made');
  const filler = path.join(folder, 'filler');
  return {
    folder,
    /** Fills all remaining space. */
    fill() {
      const file = openSync(filler, 'a');
      try {
        // Whole megabytes first, then single pages.
        for (const bytes of [1_048_576, 4_096]) writeAll(file, Buffer.alloc(bytes));
      } finally {
        closeSync(file);
      }
    },
    /** Frees the space again. */
    free: () => rmSync(filler, { force: true }),
  };
};

/** Writes the piece repeatedly until there is no room for it. */
const writeAll = (file: number, piece: Buffer): void => {
  try {
    for (;;) writeSync(file, piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
};

/** Unmounts the small disks in a folder, even if a killed test left them. */
export const unmountSmallDisks = (folder: string): void => {
  let mounts = '';
  try {
    mounts = readFileSync('/proc/mounts', 'utf8');
  } catch {
    // This is not Linux, so there are no small disks.
  }
  for (const line of mounts.split('\n')) {
    const [device, place = ''] = line.split(' ');
    const is_inside = place === folder || place.startsWith(`${folder}/`);
    if (device === 'small-disk' && is_inside) spawnSync('umount', ['-l', place]);
  }
};
