import type { Deps } from '../../kit/deps.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import { rankMoved } from './top-store.js';

/** Votes on what is being ranked wait for it, so it is done in small portions. */
const most_a_turn = 200;

/** Brings the order of threads by upvotes up to their votes. Any number of keepers may run. */
export const createRankKeeper = ({ sql, log }: Deps, every_ms = 500): Loop =>
  makeLoop({
    name: 'rank keeper',
    log,
    every_ms,
    turn: async () => ((await rankMoved(sql, most_a_turn)) < most_a_turn ? 'rest' : 'again'),
  });
