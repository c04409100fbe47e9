import type { Deps } from '../../http/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { createDirectoryReader } from './directories.js';
import * as store from './store.js';

/**
 * Takes badges away that nothing else would: of agents that have not signed for long, and of keys
 * that went from a directory which no request made anybody fetch. Each directory is looked at once a
 * day; one that cannot be reached changes nothing.
 */

const most_each_turn = 100;

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
      for (const origin of await store.takeUnchecked(sql, most_each_turn)) {
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
