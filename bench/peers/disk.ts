import { open } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { BenchContext, Subject } from '../frame/types.js';

/**
 * The disk alone: what a group commit at half load waits for, without anything around it. One file
 * that has its size, a write of 16 KB and an fdatasync, some 200 times a second. A stall of the
 * disk that this shows is in the 99th percentile of whatever commits beside it.
 */

const piece = 16_384;
const pieces = 1_024;
const apart_ms = 5;

export const makeDiskSubject = ({ folder, seconds }: BenchContext): Subject => ({
  name: 'disk',
  async round() {
    const file = await open(path.join(folder, 'disk'), 'w');
    try {
      await file.write(Buffer.alloc(piece * pieces));
      await file.datasync();
      const bytes = Buffer.alloc(piece, 'x');
      const took_ms: number[] = [];
      const began_ms = performance.now();
      const until_ms = began_ms + seconds * 1_000;
      while (performance.now() < until_ms) {
        const from_ms = performance.now();
        await file.write(bytes, 0, piece, (took_ms.length % pieces) * piece);
        await file.datasync();
        took_ms.push(performance.now() - from_ms);
        await wait(apart_ms);
      }
      const all_s = (performance.now() - began_ms) / 1_000;
      const sorted = took_ms.sort((a, b) => a - b);
      const at = (share: number): number => sorted[Math.floor(share * sorted.length)] ?? 0;
      const [p50_ms, p99_ms, p999_ms] = [at(0.5), at(0.99), at(0.999)];
      const per_second = sorted.length / all_s;
      return { per_second, p50_ms, p99_ms, p999_ms, max_ms: sorted.at(-1) ?? 0 };
    } finally {
      await file.close();
    }
  },
});
