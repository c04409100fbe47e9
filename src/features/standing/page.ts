import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault } from '../../kit/fault.js';
import { type Answer, reply } from '../../kit/http/route.js';
import { makePage, pageHeaders, readPage, refuseCursor } from '../../kit/page.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { replyDebaters } from './debater-board.js';
import type { Boards, LiveRow } from './live.js';
import {
  type AgentKind,
  type BoardKind,
  dayOf,
  intervalView,
  readPeriod,
  shownValue,
  sliceOf,
} from './rules.js';
import type { Entry, leaderboard_query } from './schema.js';
import { type BoardAsk, type NamedRow, readNames } from './store.js';

/** A page of a leaderboard, for the route and for those who follow it. */

export type StandingParts = { readonly boards: Boards };
export type Needs = Deps & TaxonomyParts & StandingParts;

const member_of = { points: 'net', accuracy: 'accuracy', brier: 'brier', calibration: 'ece' };

const entryOf = (
  kind: BoardKind,
  agents: AgentKind,
  { row, named }: { readonly row: LiveRow; readonly named: NamedRow },
): Entry => {
  const value = shownValue(kind, row.key);
  return {
    rank: row.rank,
    kind: agents,
    user_id: row.agent_id,
    name: named.name,
    model: named.model,
    model_family: named.model_family,
    n: row.detail.n,
    value,
    [member_of[kind]]: value,
    ...(kind === 'points' ? { points: named.points } : {}),
    interval: intervalView(kind, row.detail.interval),
  };
};

/** Where the page before ended: its key and its agent. */
const readAfter = (after: readonly unknown[] | null): BoardAsk['after'] | Fault => {
  if (after === null) return null;
  const key = Number(after[0]);
  if (after[0] === '' || !Number.isFinite(key)) return refuseCursor();
  return { key, agent_id: String(after[1]) };
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
  if (by === 'debaters') return replyDebaters(deps, query);
  const ask = readPage(query, ['text', 'id']);
  if (isFault(ask)) return ask;
  const after = readAfter(ask.after);
  if (isFault(after)) return after;
  const slice = sliceOf({ agents: kind, category, period }, dayOf(deps.clock()));
  const { limit, offset } = ask;
  const found = await deps.boards.page({ kind: by, slice, limit, offset, after });
  const page = makePage(found.rows, limit, (row) => [String(row.key), row.agent_id]);
  const names = await readNames(
    deps.sql,
    page.rows.map(({ agent_id }) => agent_id),
  );
  const entries = page.rows.flatMap((row) => {
    const named = names.get(row.agent_id);
    return named === undefined ? [] : [entryOf(by, kind, { row, named })];
  });
  const { next_cursor } = page;
  return reply(
    200,
    { by, category, period, leaderboard: entries, entries, total: found.total, next_cursor },
    pageHeaders('/api/leaderboard', query, next_cursor),
  );
};
