import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { type LeaderboardParts, namesOf, ofOf } from './reading.js';
import { type BoardClass, dayOf, type MeanKind, type Period, sliceOf } from './rules.js';
import type { history_schema } from './schema.js';
import type { RunningMean } from './scores-store.js';
import { type BoardRow, readNames } from './store.js';

/** The mean scores of a board's first forecasters over time. */

/** Forecasters beside the crowd and the even guess. */
const max_lines = 8;
/** The first eight are looked for among these rows, because some may have too few predictions. */
const first_rows = 100;

const references = ['crowd', 'even'].map(
  (name): BoardRow => ({
    agent_id: '',
    key: 0,
    rank: null,
    detail: { n: 0, value: 0, interval: null, name, reference: name },
  }),
);

export interface HistoryRequest {
  readonly by: MeanKind;
  readonly of: BoardClass;
  readonly category: string | null;
  readonly period: Period;
  /** Minimum number of resolved predictions of a forecaster. */
  readonly least: number;
}

/**
 * Reads the first page of the board, and then by index all scores of the first eight forecasters,
 * of the crowd and of the even guess in its slice. The scores are read at most once a minute, and
 * again when the place or the mean of one of the eight changes.
 */
export const readHistory = async (
  deps: Deps & LeaderboardParts,
  { by, of, category, period, least }: HistoryRequest,
): Promise<Static<typeof history_schema>> => {
  const slice = sliceOf({ category, period }, dayOf(deps.clock()));
  const page = { kind: by, of, slice, limit: first_rows, offset: 0, after: null };
  const { rows } = await deps.boards.page(page);
  const first = rows
    .filter(({ rank, detail }) => rank !== null && detail.n >= least)
    .slice(0, max_lines);
  const shown = [...first, ...references];
  const [names, means] = await Promise.all([
    readNames(
      deps.reads,
      first.map(({ agent_id }) => agent_id),
    ),
    first.length === 0 ? [] : deps.boards.history(by, { of, slice, rows: shown }),
  ]);
  const isOf = ({ agent_id, detail: { reference } }: BoardRow, mean: RunningMean): boolean =>
    reference == null ? mean.id === agent_id : mean.reference === reference;
  const lines = shown.flatMap((row) => {
    const named = namesOf(of, row, names.get(row.agent_id));
    const own = means.filter((mean) => isOf(row, mean));
    if (named === null || own.length === 0) return [];
    const { kind, user_id, name, model_family } = named;
    const points = own.map(({ at, n, value }) => ({ at: at.toISOString(), n, value }));
    return [{ rank: row.rank, kind, user_id, name, model_family, points }];
  });
  return { by, of: ofOf(of), category, period, lines };
};
