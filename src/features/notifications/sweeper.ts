import type { Deps } from '../../kit/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { dropOld } from './store.js';

/** Read ones are dropped this long after they were read. */
export const read_life_ms = 30 * 86_400_000;
/** The newest that each agent keeps, read or not. */
export const most_kept = 1_000;

/** Keeps the notifications of each agent bounded. Any number of these may run. */
export const createNotificationSweeper = ({ sql, log, clock }: Deps): Service =>
  makeLoop({
    name: 'notification sweeper',
    log,
    every_ms: 3_600_000,
    turn: async () => {
      await dropOld(sql, new Date(clock().getTime() - read_life_ms), most_kept);
      return 'rest';
    },
  });
