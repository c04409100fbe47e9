import { refuse } from '../../kit/fault.js';
import { ws_faults } from '../../kit/ws/frames.js';
import { makePolledSource, type StateSource } from '../../kit/ws/states.js';
import { type Needs, readLeaderboard } from './page.js';
import { type BoardName, boards, type Period, periods } from './rules.js';

/**
 * `leaderboard:{by}` and `leaderboard:{by}:{period}`: the first twenty of a board as a state topic.
 * The boards follow the record within about a second, so they are looked at as often.
 */

const prefix = 'leaderboard:';
const every_ms = 1_000;

interface Named {
  readonly by: BoardName;
  readonly period: Period;
}

/** Null for a board that there is not; that of debaters has no periods. */
const readName = (name: string): Named | null => {
  const [given, period = 'all', ...rest] = name.split(':');
  const by = boards.find((board) => board === given);
  const known = periods.find((one) => one === period);
  if (by === undefined || known === undefined || rest.length > 0) return null;
  return by === 'debaters' && known !== 'all' ? null : { by, period: known };
};

export const makeLeaderboardTopics = (deps: Needs, touch: (topic: string) => void): StateSource =>
  makePolledSource({
    resolve: (label) => {
      if (!label.startsWith(prefix)) return null;
      if (readName(label.slice(prefix.length)) !== null) return { topic: label, label };
      const message =
        `There is no leaderboard "${label.slice(prefix.length, 80)}"; there are ` +
        `${boards.join(', ')}, of ${periods.join(', ')} (leaderboard:accuracy:30d).`;
      return refuse(ws_faults.INVALID_TOPIC, { message });
    },
    read: async (topic) => {
      const named = readName(topic.slice(prefix.length));
      const answer = named === null ? null : await readLeaderboard(deps, { ...named, limit: 20 });
      if (answer?.kind !== 'reply') return null;
      const { by, category, period, leaderboard, total } = answer.body as Record<string, unknown>;
      return { by, category, period, leaderboard, total };
    },
    every_ms,
    touch,
  });
