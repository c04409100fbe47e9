import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { makePage, readPage, refuseCursor } from '../../http/page.js';
import { type Fault, isFault } from '../../kit/fault.js';
import { modelFamily } from '../taxonomy/model-family.js';
import type { Boards } from './boards.js';
import { type BoardClass, type BoardName, dayOf, isGroup, type Period, sliceOf } from './rules.js';
import type { debaters_query, Entry, leaderboard_schema, Scores } from './schema.js';
import { type BoardQuery, type BoardRow, type NamedRow, readNames } from './store.js';

export type LeaderboardParts = { readonly boards: Boards };

/** Reads the end of the previous page: its last key and agent. */
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

const no_scores: Scores = {
  points: null,
  accuracy: null,
  brier: null,
  log: null,
  relative: null,
  skill: null,
  calibration: null,
  adjusted: null,
};

/** Returns the names of a row: from `named` for an agent, else from the row itself. */
export const namesOf = (of: BoardClass, { detail, agent_id }: BoardRow, named?: NamedRow) => {
  const { name, reference } = detail;
  if (named !== undefined) {
    const { kind, model, model_family, points } = named;
    return { kind, user_id: agent_id, name: named.name, model, model_family, points };
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

/** Returns the name of a class in the API. */
export const ofOf = (of: BoardClass): 'agents' | 'families' | 'models' =>
  isGroup(of) ? (of === 'family' ? 'families' : 'models') : 'agents';

export interface BoardRequest {
  readonly by: BoardName;
  readonly of: BoardClass;
  readonly category: string | null;
  readonly period: Period;
  readonly query: Pick<Static<typeof debaters_query>, 'limit' | 'cursor' | 'offset' | 'search'> & {
    readonly include?: 'scores';
  };
}

/** Reads a page of a board as the API returns it. */
export const readLeaderboard = async (
  deps: Deps & LeaderboardParts,
  { by, of, category, period, query }: BoardRequest,
): Promise<Static<typeof leaderboard_schema> | Fault> => {
  const page_query = readPage(`/api/leaderboard/${by}/${of}/${category}/${period}`, query, [
    'text',
    'id',
  ]);
  if (isFault(page_query)) return page_query;
  const after = readAfter(page_query.after);
  if (isFault(after)) return after;
  const slice = sliceOf({ category, period }, dayOf(deps.clock()));
  const board = { ...page_query, kind: by, of, slice, after };
  const { search, include } = query;
  const found = await (search === undefined
    ? deps.boards.page(board)
    : deps.boards.search(board, search));
  const page = makePage(found.rows, page_query, (row) => [String(row.key), row.agent_id]);
  const [names, figures] = await Promise.all([
    readNames(
      deps.reads,
      page.rows.map(({ agent_id }) => agent_id),
    ),
    include === undefined ? undefined : deps.boards.figures({ of, slice, rows: page.rows }),
  ]);
  const entries = page.rows.flatMap((row): Entry[] => {
    const { rank, detail, agent_id } = row;
    const named = namesOf(of, row, names.get(agent_id));
    if (named === null) return [];
    const { name: _, reference: __, ...shown } = detail;
    const entry = { rank, ...named, ...shown, [member_of[by]]: detail.value };
    if (figures === undefined) return [entry];
    // The board itself may be a second older than the scores.
    const scores = { ...no_scores, ...figures.get(agent_id), [by]: detail.value };
    return [{ ...entry, scores }];
  });
  const { total, coverage } = found;
  const { next_cursor } = page;
  return {
    by,
    of: ofOf(of),
    category,
    period,
    ...(coverage && { coverage }),
    leaderboard: entries,
    entries,
    total,
    next_cursor,
  };
};
