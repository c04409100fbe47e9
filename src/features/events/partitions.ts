import type { Deps } from '../../kit/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { ensurePartitions } from './store.js';

/** Keeps the partitions of the next days ready. */
export const createPartitionKeeper = (deps: Deps): Service =>
  makeLoop({
    name: 'event partitions',
    log: deps.log,
    every_ms: 3_600_000,
    after_error_ms: 5_000,
    turn: async () => {
      await ensurePartitions(deps.sql, 7);
      return 'rest';
    },
  });
