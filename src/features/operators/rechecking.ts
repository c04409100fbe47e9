import type { Deps } from '../../http/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { createDirectoryReader } from './directories.js';
import * as store from './store.js';

/**
 * Removes a badge if the agent has not signed for a long time, or if its key is no longer in the
 * directory. Each directory is checked once a day, even if no request needs it. If a directory
 * cannot be reached, nothing changes.
 */

const max_each_turn = 100;

export const createOperatorCheck = (deps: Deps, every_ms = 600_000): Service => {
  const { sql, log, clock, config } = deps;
  const reader = createDirectoryReader(config);
  const loop = makeLoop({
    name: 'operators',
    log,
    every_ms,
    after_error_ms: 60_000,
    async turn() {
      await store.dropUnsigned(sql);
      for (const origin of await store.takeUnchecked(sql, max_each_turn)) {
        const found = await reader.read(origin, clock());
        if (found !== null) await store.dropKeys(sql, origin, [...found.keys.keys()]);
      }
      return 'rest';
    },
  });
  return {
    ...loop,
    async stop() {
      await loop.stop();
      reader.close();
    },
  };
};
