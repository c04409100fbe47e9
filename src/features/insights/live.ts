import type { Deps } from '../../kit/deps.js';
import { groupBy } from '../../kit/group-by.js';
import { makeGate } from '../../kit/ws/gate.js';
import type { Movers } from '../history/index.js';
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

/**
 * Days in the memory of an api process. What was counted on a day that is over does not change; how
 * its questions were resolved can, and so do names. A day is therefore read again after a while,
 * the longer the more reading it cost, and readers who ask for the same wait for the same.
 */
export interface Days {
  /** Rejects with a `DaysBusyError` when too many wait for other days. */
  read(ask: DayAsk): Promise<Daily>;
}

export class DaysBusyError extends Error {}

const most_days = 60;
const most_waiting = 16;
const fresh_ms = { past: 20_000, today: 5_000 };
const idle_share = 50;
const day_ms = 86_400_000;

const readInput = async (sql: Deps['sql'], moved: Movers, ask: DayAsk): Promise<DayInput> => {
  const { listed, top, closing_days } = daily_limits;
  const soon = new Date(ask.to.getTime() + closing_days * day_ms);
  const [activity, counts, sides, published, closing, resolved, all_movers] = await Promise.all([
    readFamilies(sql, ask),
    readCounts(sql, ask),
    readSides(sql, ask),
    readPublished(sql, ask, listed),
    readClosing(sql, { from: ask.to, to: soon }, listed),
    readResolved(sql, ask, daily_limits.resolved),
    moved.read({ from: ask.from, to: ask.to }),
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

interface Kept {
  readonly daily: Daily;
  readonly until_ms: number;
}

export const createDays = ({ sql }: Pick<Deps, 'sql'>, moved: Movers): Days => {
  const kept = new Map<string, Kept>();
  const building = new Map<string, Promise<Daily>>();
  const gate = makeGate(1);
  let waiting = 0;

  const build = async (ask: DayAsk): Promise<Daily> => {
    if (waiting >= most_waiting) throw new DaysBusyError('too many days are waited for');
    waiting += 1;
    try {
      return await gate(async () => {
        const started_ms = performance.now();
        const daily = buildDay(await readInput(sql, moved, ask));
        const now_ms = performance.now();
        const fresh = ask.is_partial ? fresh_ms.today : fresh_ms.past;
        kept.delete(ask.date);
        kept.set(ask.date, {
          daily,
          until_ms: now_ms + Math.max(fresh, idle_share * (now_ms - started_ms)),
        });
        const [oldest] = kept.keys();
        if (kept.size > most_days && oldest !== undefined) kept.delete(oldest);
        return daily;
      });
    } finally {
      waiting -= 1;
    }
  };

  return {
    async read(ask) {
      const known = kept.get(ask.date);
      const is_good =
        known !== undefined &&
        known.daily.partial === ask.is_partial &&
        performance.now() < known.until_ms;
      if (is_good) return known.daily;
      const under_way = building.get(ask.date);
      if (under_way !== undefined) return under_way;
      const work = build(ask).finally(() => building.delete(ask.date));
      building.set(ask.date, work);
      return work;
    },
  };
};
