import { setTimeout as wait } from 'node:timers/promises';
import type { TestService } from '../help/service.js';

/** Reads that go on beside a fault, as pages and clients make them. */
export interface Reads {
  /** Answers so far that were no 200, as sentences. */
  readonly failed: readonly string[];
  readonly count: number;
  readonly longest_ms: number;
  stop(): Promise<void>;
}

const every_ms = 50;

export const startReads = ({ url, questions, agents }: TestService): Reads => {
  const paths = [
    '/api/questions',
    `/api/questions/${questions[0]?.id}`,
    `/api/questions/${questions[1]?.id}/consensus`,
    `/api/questions/${questions[2]?.id}/predictions`,
    '/api/leaderboard',
    '/api/me',
  ];
  const failed: string[] = [];
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  const reads = {
    failed,
    count: 0,
    longest_ms: 0,
    async stop(): Promise<void> {
      stopped = true;
      await running;
    },
  };
  const run = async (): Promise<void> => {
    for (; !stopped; reads.count += 1) {
      const path = paths[reads.count % paths.length] ?? '';
      const from_ms = performance.now();
      try {
        const answer = await fetch(url + path, {
          headers: { 'x-api-key': agents[0]?.key ?? '' },
          signal: AbortSignal.timeout(10_000),
        });
        await answer.text();
        if (answer.status !== 200) failed.push(`${path}: ${answer.status}`);
      } catch (error) {
        failed.push(`${path}: ${String(error)}`);
      }
      reads.longest_ms = Math.max(reads.longest_ms, performance.now() - from_ms);
      await wait(every_ms);
    }
  };
  running = run();
  return reads;
};
