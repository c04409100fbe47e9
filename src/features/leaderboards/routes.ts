import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { makePage, pageHeaders, readPage, refuseCursor } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { ws_faults } from '../../socket/frames.js';
import type { StateSource } from '../../socket/states.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { modelFamily } from '../taxonomy/model-family.js';
import { taxonomy_faults } from '../taxonomy/rules.js';
import type { Boards } from './live.js';
import {
  type BoardClass,
  type BoardName,
  boards,
  dayOf,
  group_kinds,
  isGroup,
  isWhole,
  type Period,
  periods,
  readPeriod,
  sliceOf,
} from './rules.js';
import {
  debaters_query,
  debaters_schema,
  type Entry,
  leaderboard_query,
  leaderboard_schema,
} from './schema.js';
import { type BoardQuery, type BoardRow, type NamedRow, readNames } from './store.js';

export type LeaderboardParts = { readonly boards: Boards };
type Needs = Deps & TaxonomyParts & LeaderboardParts;

/** Where the page before ended: its key and its agent. */
const readAfter = (after: readonly unknown[] | null): BoardQuery['after'] | Fault => {
  if (after === null) return null;
  const key = Number(after[0]);
  if (after[0] === '' || !Number.isFinite(key)) return refuseCursor();
  return { key, agent_id: String(after[1]) };
};

const member_of: Readonly<Record<BoardName, keyof Entry>> = {
  ...({ points: 'net', accuracy: 'accuracy', brier: 'brier', calibration: 'ece' } as const),
  ...({ log: 'log_score', relative: 'relative', skill: 'skill' } as const),
  ...({ adjusted: 'adjusted_brier', debaters: 'upvotes' } as const),
};

/** Who stands in a row: an agent by its id, others by what the row says. */
const namesOf = (of: BoardClass, { detail, agent_id }: BoardRow, named?: NamedRow) => {
  const { name, reference } = detail;
  if (named !== undefined) {
    const { model, model_family, points } = named;
    return { kind: of, user_id: agent_id, name: named.name, model, model_family, points };
  }
  if (!name) return null;
  const is_model = of === 'model' && !reference;
  return {
    kind: (reference ?? of) as Entry['kind'],
    user_id: null,
    name,
    model: is_model ? name : null,
    model_family: is_model ? modelFamily(name) : reference ? null : name,
  };
};

interface PageOf {
  readonly by: BoardName;
  readonly of: BoardClass;
  readonly category: string | null;
  readonly period: Period;
  readonly query: Pick<Static<typeof debaters_query>, 'limit' | 'cursor' | 'offset'>;
}

const classOf = ({ of, kind = 'agent' }: Static<typeof leaderboard_query>): BoardClass =>
  of === 'families' ? 'family' : of === 'models' ? 'model' : kind;

const readLeaderboard = async (
  deps: Needs,
  { by, of, category, period, query }: PageOf,
): Promise<Static<typeof leaderboard_schema> | Fault> => {
  const page_query = readPage(`/api/leaderboard/${by}/${of}/${category}/${period}`, query, [
    'text',
    'id',
  ]);
  if (isFault(page_query)) return page_query;
  const after = readAfter(page_query.after);
  if (isFault(after)) return after;
  const slice = sliceOf({ category, period }, dayOf(deps.clock()));
  const found = await deps.boards.page({ ...page_query, kind: by, of, slice, after });
  const page = makePage(found.rows, page_query, (row) => [String(row.key), row.agent_id]);
  const names = await readNames(
    deps.reads,
    page.rows.map(({ agent_id }) => agent_id),
  );
  const entries = page.rows.flatMap((row): Entry[] => {
    const { rank, detail, agent_id } = row;
    const named = namesOf(of, row, names.get(agent_id));
    if (named === null) return [];
    const { name: _, reference: __, ...figures } = detail;
    return [{ rank, ...named, ...figures, [member_of[by]]: detail.value }];
  });
  const { total, coverage } = found;
  const { next_cursor } = page;
  return {
    by,
    of: isGroup(of) ? (of === 'family' ? 'families' : 'models') : 'agents',
    category,
    period,
    ...(coverage && { coverage }),
    leaderboard: entries,
    entries,
    total,
    next_cursor,
  };
};

/** Why there is no such board; null where there is. */
const findMissing = ({ by, of, category, period }: Omit<PageOf, 'query'>): Fault | null => {
  const refused = (path: string, message: string) =>
    refuse(common_faults.INVALID_REQUEST, { message, fields: [{ path, message }] });
  const known: readonly string[] = [...group_kinds, 'adjusted'];
  if (isGroup(of) && !known.includes(by)) {
    return refused('query.by', `Families and models are ranked by ${known.join(', ')} only.`);
  }
  if (!isWhole(by) || (category === null && period === 'all')) return null;
  const path = category === null ? 'query.period' : 'query.category';
  return refused(path, `The board by=${by} has no categories and no periods.`);
};

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
      ({ rank, user_id, name, upvotes = 0, comments = 0, replies = 0 }) => ({
        rank: rank!,
        kind: of,
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

export const routes = [leaderboard, debaters];

/**
 * `leaderboard:{by}` and `leaderboard:{by}:{period}`: the first twenty of a board as a state topic.
 * The boards follow the record within about a second, so they are looked at as often.
 */

const topic_prefix = 'leaderboard:';
const every_ms = 1_000;
const most_listed = 20;

/** Null for a board that there is not. */
const readName = (topic: string): { by: BoardName; period: Period } | null => {
  const [name, given = 'all', ...rest] = topic.slice(topic_prefix.length).split(':');
  const by = boards.find((board) => board === name);
  const period = periods.find((one) => one === given);
  if (by === undefined || period === undefined || rest.length > 0) return null;
  return isWhole(by) && period !== 'all' ? null : { by, period };
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
    const board = { ...named, of: 'agent', category: null, query: { limit: most_listed } } as const;
    const page = await readLeaderboard(deps, board);
    if (isFault(page)) return null;
    const { by, category, period, leaderboard, total } = page;
    return { version: Date.now(), data: { by, category, period, leaderboard, total } };
  },
});
