import type { Deps } from '../../kit/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { dropBeyond, dropRead, listNotified } from './store.js';

/** Keeps the notifications of each agent bounded. */

/** Read ones are dropped this long after they were read. */
export const read_life_ms = 30 * 86_400_000;
/** The newest that each agent keeps, read or not. */
export const most_kept = 1_000;
const agents_a_turn = 500;
const rows_a_turn = 5_000;

/**
 * One turn drops old read ones, and what is beyond the bound of the next agents in the order of
 * their ids; it begins anew after the last. Any number of these may run.
 */
export const makeSweep = ({ sql, clock }: Pick<Deps, 'sql' | 'clock'>) => {
  let last: string | null = null;
  return async (): Promise<number> => {
    const before = new Date(clock().getTime() - read_life_ms);
    const dropped = await dropRead(sql, before, rows_a_turn);
    const agents = await listNotified(sql, last, agents_a_turn);
    last = agents.length < agents_a_turn ? null : (agents.at(-1) ?? null);
    return dropped + (await dropBeyond(sql, agents, most_kept));
  };
};

export const createNotificationSweeper = (deps: Deps, every_ms = 10_000): Service => {
  const sweep = makeSweep(deps);
  return makeLoop({
    name: 'notification sweeper',
    log: deps.log,
    every_ms,
    turn: async () => ((await sweep()) >= rows_a_turn ? 'again' : 'rest'),
  });
};
