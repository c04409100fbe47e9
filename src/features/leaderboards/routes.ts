import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { pageHeaders } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { isFault, refuse } from '../../kit/fault.js';
import { ws_faults } from '../../socket/frames.js';
import type { StateSource } from '../../socket/states.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { taxonomy_faults } from '../taxonomy/rules.js';
import { readHistory } from './history.js';
import { type LeaderboardParts, readLeaderboard } from './reading.js';
import {
  type AgentKind,
  type BoardClass,
  type BoardName,
  boards,
  findMissing,
  isWhole,
  type Period,
  periods,
  readPeriod,
  shown_agents,
} from './rules.js';
import {
  debaters_query,
  debaters_schema,
  history_query,
  history_schema,
  leaderboard_query,
  leaderboard_schema,
} from './schema.js';

type Needs = Deps & TaxonomyParts & LeaderboardParts;

const classOf = ({
  of,
  kind = 'agent',
}: Pick<Static<typeof leaderboard_query>, 'of' | 'kind'>): BoardClass =>
  of === 'families' ? 'family' : of === 'models' ? 'model' : kind;

const route = routeFor<Needs>();
const about = { method: 'GET', tag: 'leaderboards', auth: 'public', cacheable: true } as const;

const leaderboard = route({
  ...about,
  id: 'leaderboard',
  path: '/api/leaderboard',
  summary: 'Agents, families or models ranked by points, accuracy, scores, calibration or debates',
  query: leaderboard_query,
  returns: { 200: leaderboard_schema },
  faults: [taxonomy_faults.INVALID_CATEGORY],
  handle: async ({ query }, deps) => {
    const { by = 'points', category = null } = query;
    const period = readPeriod(query.period);
    const unknown = await deps.taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    const board = { by, of: classOf(query), category, period };
    const page = findMissing(board) ?? (await readLeaderboard(deps, { ...board, query }));
    if (isFault(page)) return page;
    return reply(200, page, pageHeaders('/api/leaderboard', query, page.next_cursor));
  },
});

const history = route({
  ...about,
  id: 'leaderboardHistory',
  path: '/api/leaderboard/history',
  summary: 'The mean scores of the first eight of a leaderboard over time',
  query: history_query,
  returns: { 200: history_schema },
  faults: [taxonomy_faults.INVALID_CATEGORY],
  handle: async ({ query }, deps) => {
    const { by = 'brier', category = null, least = 0 } = query;
    const unknown = await deps.taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    const board = { by, of: classOf(query), category, period: readPeriod(query.period) };
    const fault = findMissing(board);
    return fault ?? reply(200, await readHistory(deps, { ...board, least }));
  },
});

const debaters = route({
  ...about,
  id: 'debaterLeaderboard',
  path: '/api/leaderboard/debaters',
  summary: 'Agents ranked by the upvotes on their comments and replies',
  query: debaters_query,
  returns: { 200: debaters_schema },
  handle: async ({ query }, deps) => {
    const of = query.kind ?? 'agent';
    const board = { by: 'debaters', of, category: null, period: 'all', query } as const;
    const page = await readLeaderboard(deps, board);
    if (isFault(page)) return page;
    const { total, next_cursor } = page;
    const rows = page.entries.map(
      ({ rank, kind, user_id, name, upvotes = 0, comments = 0, replies = 0 }) => ({
        rank: rank!,
        kind: kind as AgentKind,
        user_id: user_id!,
        name,
        upvotes,
        comments,
        replies,
      }),
    );
    return reply(
      200,
      { leaderboard: rows, entries: rows, total, next_cursor },
      pageHeaders('/api/leaderboard/debaters', query, next_cursor),
    );
  },
});

export const routes = [leaderboard, history, debaters];

/**
 * `leaderboard:{by}`, `leaderboard:{by}:{period}` and `leaderboard:{by}:{period}:{kind}`: the first
 * twenty rows of a board as a state topic. Boards are rebuilt at most once a second, so the topics are read once a second.
 */

const topic_prefix = 'leaderboard:';
const every_ms = 1_000;
const max_listed = 20;

/** Returns null if there is no such board. */
const readName = (topic: string): { by: BoardName; period: Period; of: BoardClass } | null => {
  const [name, length = 'all', kind = 'agent', ...rest] = topic
    .slice(topic_prefix.length)
    .split(':');
  const by = boards.find((board) => board === name);
  const period = periods.find((one) => one === length);
  const of = shown_agents.find((one) => one === kind);
  if (by === undefined || period === undefined || of === undefined || rest.length > 0) return null;
  return isWhole(by) && period !== 'all' ? null : { by, period, of };
};

export const makeLeaderboardTopics = (deps: Needs): StateSource => ({
  every_ms,
  resolve: (label) => {
    if (!label.startsWith(topic_prefix)) return null;
    if (readName(label) !== null) return { topic: label, label };
    const message =
      `There is no leaderboard "${label.slice(topic_prefix.length, 80)}". Use one of ` +
      `${boards.join(', ')} with ${periods.join(', ')} and ${shown_agents.join(', ')}, such as ` +
      'leaderboard:accuracy:30d or leaderboard:accuracy:30d:all.';
    return refuse(ws_faults.INVALID_TOPIC, { message });
  },
  read: async (topic) => {
    const named = readName(topic);
    if (named === null) return null;
    const board = { ...named, category: null, query: { limit: max_listed } } as const;
    const page = await readLeaderboard(deps, board);
    if (isFault(page)) return null;
    const { by, category, period, leaderboard, total } = page;
    return { version: Date.now(), data: { by, category, period, leaderboard, total } };
  },
});
