import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { type Answer, reply } from '../../kit/http/route.js';
import { makePage, pageHeaders, readPage, refuseCursor } from '../../kit/page.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import type { Boards } from './live.js';
import {
  type AgentKind,
  type BoardName,
  dayOf,
  intervalView,
  readPeriod,
  type Slice,
  shownValue,
  sliceOf,
} from './rules.js';
import type { debaters_query, Entry, leaderboard_query } from './schema.js';
import { type BoardAsk, type BoardRow, type NamedRow, readNames } from './store.js';

/** A page of a leaderboard, for the routes and for those who follow it. */

export type StandingParts = { readonly boards: Boards };
export type Needs = Deps & TaxonomyParts & StandingParts;

/** Where the page before ended: its key and its agent. */
const readAfter = (after: readonly unknown[] | null): BoardAsk['after'] | Fault => {
  if (after === null) return null;
  const key = Number(after[0]);
  if (after[0] === '' || !Number.isFinite(key)) return refuseCursor();
  return { key, agent_id: String(after[1]) };
};

interface Listed {
  readonly total: number;
  readonly rows: readonly { readonly row: BoardRow; readonly named: NamedRow }[];
  readonly next_cursor: string | null;
}

/** A page with the names of its agents. */
const readListed = async (
  { boards, sql }: Pick<Needs, 'boards' | 'sql'>,
  query: Static<typeof debaters_query>,
  { kind, slice }: { readonly kind: BoardName; readonly slice: Slice },
): Promise<Listed | Fault> => {
  const ask = readPage(query, ['text', 'id']);
  if (isFault(ask)) return ask;
  const after = readAfter(ask.after);
  if (isFault(after)) return after;
  const { limit, offset } = ask;
  const found = await boards.page({ kind, slice, limit, offset, after });
  const page = makePage(found.rows, limit, (row) => [String(row.key), row.agent_id]);
  const ids = page.rows.map(({ agent_id }) => agent_id);
  const names = await readNames(sql, ids);
  const rows = page.rows.flatMap((row) => {
    const named = names.get(row.agent_id);
    return named === undefined ? [] : [{ row, named }];
  });
  return { total: found.total, rows, next_cursor: page.next_cursor };
};

const member_of = {
  ...{ points: 'net', accuracy: 'accuracy', brier: 'brier', calibration: 'ece' },
  debaters: 'upvotes',
};

const entryOf = (kind: BoardName, agents: AgentKind, { row, named }: Listed['rows'][number]) => {
  const { n, interval, ...counts } = row.detail;
  const value = shownValue(kind, row.key);
  const entry: Entry = {
    rank: row.rank,
    kind: agents,
    user_id: row.agent_id,
    name: named.name,
    model: named.model,
    model_family: named.model_family,
    n,
    value,
    [member_of[kind]]: value,
    ...(kind === 'points' ? { points: named.points } : {}),
    ...counts,
    interval: intervalView(kind, interval),
  };
  return entry;
};

/** A page of a board, as the route answers it. */
export const readLeaderboard = async (
  deps: Needs,
  query: Static<typeof leaderboard_query>,
): Promise<Answer> => {
  const { by = 'points', kind = 'agent', category = null } = query;
  const period = readPeriod(query.period);
  const unknown = await deps.taxonomy.checkQuery(query);
  if (unknown !== null) return unknown;
  if (by === 'debaters' && (category !== null || period !== 'all')) {
    const path = category === null ? 'query.period' : 'query.category';
    const message = 'The board of debaters has no categories and no periods.';
    return refuse(common_faults.INVALID_REQUEST, { message, fields: [{ path, message }] });
  }
  const slice = sliceOf({ agents: kind, category, period }, dayOf(deps.clock()));
  const listed = await readListed(deps, query, { kind: by, slice });
  if (isFault(listed)) return listed;
  const { total, next_cursor } = listed;
  const entries = listed.rows.map((one) => entryOf(by, kind, one));
  return reply(
    200,
    { by, category, period, leaderboard: entries, entries, total, next_cursor },
    pageHeaders('/api/leaderboard', query, next_cursor),
  );
};

/** The board of debaters in a shorter form. */
export const readDebaters = async (
  deps: Needs,
  query: Static<typeof debaters_query>,
): Promise<Answer> => {
  const { kind = 'agent' } = query;
  const slice = sliceOf({ agents: kind, category: null, period: 'all' }, 0);
  const listed = await readListed(deps, query, { kind: 'debaters', slice });
  if (isFault(listed)) return listed;
  const { total, next_cursor } = listed;
  const leaderboard = listed.rows.map(({ row, named }) => ({
    ...{ rank: row.rank, kind, user_id: row.agent_id, name: named.name, upvotes: 0 - row.key },
    ...{ comments: row.detail.comments ?? 0, replies: row.detail.replies ?? 0 },
  }));
  return reply(
    200,
    { leaderboard, entries: leaderboard, total, next_cursor },
    pageHeaders('/api/leaderboard/debaters', query, next_cursor),
  );
};
