import { makeCache, makeQueue } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import { groupBy } from '../../kit/group-by.js';
import { readMovers } from '../history/index.js';
import { buildDay, type DayInput } from './build.js';
import { type DayAsk, daily_limits, telling } from './rules.js';
import type { Daily } from './schema.js';
import {
  readClosing,
  readCounts,
  readFamilies,
  readFamilyScores,
  readMeans,
  readNames,
  readPublished,
  readResolved,
  readScores,
  readSides,
  readTopAgents,
} from './store.js';

/** Days in the memory of an api process: names and resolutions of a day that is over can change. */
export interface Days {
  /** Rejects with a `BusyError` when too many wait for other days. */
  read(ask: DayAsk): Promise<Daily>;
}

const most_days = 60;
const most_waiting = 16;
const fresh_ms = 5_000;
const day_ms = 86_400_000;

const readInput = async (sql: Deps['sql'], ask: DayAsk): Promise<DayInput> => {
  const { listed, top, closing_days } = daily_limits;
  const soon = new Date(ask.to.getTime() + closing_days * day_ms);
  const [activity, counts, sides, published, closing, resolved, all_movers] = await Promise.all([
    readFamilies(sql, ask),
    readCounts(sql, ask),
    readSides(sql, ask),
    readPublished(sql, ask, listed),
    readClosing(sql, { from: ask.to, to: soon }, listed),
    readResolved(sql, ask, daily_limits.resolved),
    readMovers(sql, ask),
  ]);
  const movers = telling(all_movers);
  const ids = resolved.map(({ id }) => id);
  const [names, means, scores, top_agents, family_scores] = await Promise.all([
    readNames(
      sql,
      movers.map(({ question_id }) => question_id),
    ),
    readMeans(sql, ids),
    readScores(sql, ids),
    readTopAgents(sql, ids, top),
    readFamilyScores(sql, ids),
  ]);
  return {
    ...{ ask, counts, movers, sides, published, closing, resolved, top_agents, family_scores },
    families: activity,
    // An agent has one family, whatever it is called by.
    agents: activity.reduce((sum, row) => sum + row.agents, 0),
    names: new Map(names.map((row) => [row.id, row])),
    means: groupBy(means, ({ question_id }) => question_id),
    scores: new Map(scores.map((row) => [row.question_id, row])),
  };
};

export const createDays = ({ sql }: Pick<Deps, 'sql'>): Days => {
  const days = makeCache<Daily>({ most: most_days, ttl_ms: fresh_ms });
  const queue = makeQueue(1, most_waiting);
  return {
    read: async (ask) =>
      days.get(`${ask.date} ${ask.is_partial}`, () =>
        queue(async () => buildDay(await readInput(sql, ask))),
      ),
  };
};
