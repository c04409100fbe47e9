import type { Deps } from '../../http/deps.js';
import { makeCache, makeQueue } from '../../kit/cache.js';
import { contestedOf, type Day, resolvedOf } from './insight-rules.js';
import {
  readClosing,
  readFamilies,
  readMovers,
  readPublished,
  readResolved,
  readSides,
  readTopAgents,
} from './insight-store.js';

const readWhole = async (sql: Deps['sql'], day: Day) => {
  const [movers, sides, published, closing, resolved] = await Promise.all([
    readMovers(sql, day),
    readSides(sql, day),
    readPublished(sql, day),
    readClosing(sql, day),
    readResolved(sql, day),
  ]);
  const ids = resolved.map(({ question_id }) => question_id);
  const [top_agents, families] = await Promise.all([
    readTopAgents(sql, ids),
    readFamilies(sql, day, ids),
  ]);
  return {
    ...{ date: day.date, from: day.from, to: day.to, partial: day.is_partial },
    ...{ movers, contested: contestedOf(sides), new: published, closing_soon: closing },
    ...{ resolved: resolvedOf(resolved), top_agents, families },
  };
};

/** Days in the memory of an api process: names and resolutions of a day that is over can change. */
export interface Days {
  /** The answer to a call. Rejects with a `BusyError` when too many wait for other days. */
  read(day: Day): Promise<object>;
}

const most_days = 60;
const most_waiting = 16;
const fresh_ms = 5_000;

export const createDays = ({ sql }: Pick<Deps, 'sql'>): Days => {
  const days = makeCache<object>({ most: most_days, ttl_ms: fresh_ms });
  const queue = makeQueue(1, most_waiting);
  return {
    read: async (day) =>
      days.get(`${day.date} ${day.is_partial}`, () => queue(() => readWhole(sql, day))),
  };
};
