import type { Redis } from 'ioredis';
import type { Sql } from '../../kit/pg/client.js';

export interface VerifyParts {
  readonly sql: Sql;
  readonly redis: Redis;
  readonly prefix: string;
  /**
   * For how long something may be under way (in the outbox, between the log and Redis) before it
   * counts as a difference. 0, for a service at rest: nothing may be under way.
   */
  readonly under_way_ms?: number;
  /** Where no timer runs, nobody keeps the leaderboards. */
  readonly without_boards?: boolean;
}

/** Sentences shown of each kind of difference. */
export const shown = 5;

/** Rows or keys that are looked at together. */
export const chunk = 500;

/** The first few of a kind; what is beyond them is counted only. */
export const makeFindings = () => {
  const lines: string[] = [];
  let count = 0;
  return {
    add(line: string): void {
      count += 1;
      if (count <= shown) lines.push(line);
    },
    get lines(): readonly string[] {
      return count <= shown ? lines : [...lines, `… and ${count - shown} more like the last one`];
    },
  };
};
