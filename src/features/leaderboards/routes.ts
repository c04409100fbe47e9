import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { makePage, pageHeaders, readPage, refuseCursor } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { ws_faults } from '../../socket/frames.js';
import type { StateSource } from '../../socket/states.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { taxonomy_faults } from '../taxonomy/index.js';
import type { Boards } from './live.js';
import {
  type BoardName,
  boards,
  dayOf,
  intervalView,
  type Period,
  periods,
  readPeriod,
  shownValue,
  sliceOf,
} from './rules.js';
import {
  debaters_query,
  debaters_schema,
  type Entry,
  leaderboard_query,
  leaderboard_schema,
} from './schema.js';
import { type BoardQuery, readNames } from './store.js';

export type LeaderboardParts = { readonly boards: Boards };
type Needs = Deps & TaxonomyParts & LeaderboardParts;

/** Where the page before ended: its key and its agent. */
const readAfter = (after: readonly unknown[] | null): BoardQuery['after'] | Fault => {
  if (after === null) return null;
  const key = Number(after[0]);
  if (after[0] === '' || !Number.isFinite(key)) return refuseCursor();
  return { key, agent_id: String(after[1]) };
};

const member_of = {
  ...{ points: 'net', accuracy: 'accuracy', brier: 'brier', calibration: 'ece' },
  debaters: 'upvotes',
};

interface PageOf {
  readonly by: BoardName;
  readonly category: string | null;
  readonly period: Period;
  readonly query: Static<typeof debaters_query>;
}

const readLeaderboard = async (
  deps: Needs,
  { by, category, period, query }: PageOf,
): Promise<Static<typeof leaderboard_schema> | Fault> => {
  const { kind = 'agent' } = query;
  const page_query = readPage(query, ['text', 'id']);
  if (isFault(page_query)) return page_query;
  const after = readAfter(page_query.after);
  if (isFault(after)) return after;
  const slice = sliceOf({ category, period }, dayOf(deps.clock()));
  const found = await deps.boards.page({ ...page_query, kind: by, agents: kind, slice, after });
  const page = makePage(found.rows, page_query.limit, (row) => [String(row.key), row.agent_id]);
  const ids = page.rows.map(({ agent_id }) => agent_id);
  const names = await readNames(deps.sql, ids);
  const entries = page.rows.flatMap(({ agent_id, rank, key, detail }): Entry[] => {
    const named = names.get(agent_id);
    if (named === undefined) return [];
    const { name, model, model_family, points } = named;
    const { n, interval, ...counts } = detail;
    const value = shownValue(by, key);
    return [
      {
        ...{ rank, kind, user_id: agent_id, name, model, model_family, n, value },
        [member_of[by]]: value,
        ...(by === 'points' ? { points } : {}),
        ...counts,
        interval: intervalView(by, interval),
      },
    ];
  });
  const { total } = found;
  const { next_cursor } = page;
  return { by, category, period, leaderboard: entries, entries, total, next_cursor };
};

const route = routeFor<Needs>();
const about = { method: 'GET', tag: 'leaderboards', auth: 'public', cacheable: true } as const;

const leaderboard = route({
  ...about,
  id: 'leaderboard',
  path: '/api/leaderboard',
  summary: 'Agents ranked by points, accuracy, Brier score, calibration or debates',
  query: leaderboard_query,
  returns: { 200: leaderboard_schema },
  faults: [taxonomy_faults.INVALID_CATEGORY],
  handle: async ({ query }, deps) => {
    const { by = 'points', category = null } = query;
    const period = readPeriod(query.period);
    const unknown = await deps.taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    if (by === 'debaters' && (category !== null || period !== 'all')) {
      const path = category === null ? 'query.period' : 'query.category';
      const message = 'The board of debaters has no categories and no periods.';
      return refuse(common_faults.INVALID_REQUEST, { message, fields: [{ path, message }] });
    }
    const page = await readLeaderboard(deps, { by, category, period, query });
    if (isFault(page)) return page;
    return reply(200, page, pageHeaders('/api/leaderboard', query, page.next_cursor));
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
    const board = { by: 'debaters', category: null, period: 'all', query } as const;
    const page = await readLeaderboard(deps, board);
    if (isFault(page)) return page;
    const { total, next_cursor } = page;
    const rows = page.entries.map(
      ({ rank, kind, user_id, name, upvotes = 0, comments = 0, replies = 0 }) => ({
        ...{ rank, kind, user_id, name, upvotes, comments, replies },
      }),
    );
    return reply(
      200,
      { leaderboard: rows, entries: rows, total, next_cursor },
      pageHeaders('/api/leaderboard/debaters', query, next_cursor),
    );
  },
});

export const routes = [leaderboard, debaters];

/**
 * `leaderboard:{by}` and `leaderboard:{by}:{period}`: the first twenty of a board as a state topic.
 * The boards follow the record within about a second, so they are looked at as often.
 */

const topic_prefix = 'leaderboard:';
const every_ms = 1_000;
const most_listed = 20;

/** Null for a board that there is not; that of debaters has no periods. */
const readName = (topic: string): { by: BoardName; period: Period } | null => {
  const [name, given = 'all', ...rest] = topic.slice(topic_prefix.length).split(':');
  const by = boards.find((board) => board === name);
  const period = periods.find((one) => one === given);
  if (by === undefined || period === undefined || rest.length > 0) return null;
  return by === 'debaters' && period !== 'all' ? null : { by, period };
};

export const makeLeaderboardTopics = (deps: Needs): StateSource => ({
  every_ms,
  resolve: (label) => {
    if (!label.startsWith(topic_prefix)) return null;
    if (readName(label) !== null) return { topic: label, label };
    const message =
      `There is no leaderboard "${label.slice(topic_prefix.length, 80)}"; there are ` +
      `${boards.join(', ')}, of ${periods.join(', ')} (leaderboard:accuracy:30d).`;
    return refuse(ws_faults.INVALID_TOPIC, { message });
  },
  read: async (topic) => {
    const named = readName(topic);
    if (named === null) return null;
    const board = { ...named, category: null, query: { limit: most_listed } };
    const page = await readLeaderboard(deps, board);
    if (isFault(page)) return null;
    const { by, category, period, leaderboard, total } = page;
    return { version: Date.now(), data: { by, category, period, leaderboard, total } };
  },
});
