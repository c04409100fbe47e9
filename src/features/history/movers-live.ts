import type { Deps } from '../../kit/deps.js';
import { createMadeCache } from '../../kit/made-cache.js';
import { makeGate } from '../../kit/ws/gate.js';
import { type Mover, rankMovers } from './movers.js';
import { readMoved, type Stretch } from './movers-store.js';

/**
 * Movers over all questions read every prediction of those that moved, so they are made one after
 * the other and kept: for a stretch that ended a while ago for as long as there is room.
 */
export interface Movers {
  /** Rejects with a `MoversBusyError` when too many wait for other stretches. */
  read(stretch: Stretch): Promise<readonly Mover[]>;
}

export class MoversBusyError extends Error {}

const most_bytes = 8_000_000;
const most_waiting = 16;

export const createMovers = ({ sql }: Pick<Deps, 'sql'>): Movers => {
  const made = createMadeCache<readonly Mover[]>((all) => 200 + 400 * all.length, most_bytes);
  const gate = makeGate(1);
  let waiting = 0;
  return {
    read: async (stretch) =>
      made.get(`${stretch.from.getTime()} ${stretch.to.getTime()}`, async () => {
        if (waiting >= most_waiting) throw new MoversBusyError('too many stretches are waited for');
        waiting += 1;
        try {
          return rankMovers(await gate(() => readMoved(sql, stretch)));
        } finally {
          waiting -= 1;
        }
      }),
  };
};
