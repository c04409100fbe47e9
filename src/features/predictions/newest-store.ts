import type { Db, Fragment } from '../../db/client.js';
import { limitToPage, timeKey } from '../../db/rows.js';
import type { CursorKey, CursorKind, PageRequest } from '../../http/page.js';

/**
 * Reads lists of predictions `p`, newest first: by the time of the latest forecast, then by id. That
 * is the time of the last revision, or the time at which an imported forecast was made.
 *
 * A revision moves a prediction to the top. A reader who has passed the top would miss it. So the
 * last page is followed by the predictions that were revised since the first page, in the order of
 * these revisions. They may appear twice, and none is missing. Imports are an exception: a forecast
 * that is imported meanwhile takes its place by its own time, even if the reader has passed it.
 *
 * A cursor is one of these. `start` is the time of the first row of the first page, and not of the
 * clock, so an unchanged list has the same cursors.
 *
 *   time, id, start   continues with older predictions
 *   time, id, null    continues with later revisions
 */
export const newest_kinds: readonly CursorKind[] = ['time', 'id', 'time'];

const forecastTime = (db: Db) => db`coalesce(p.revised_at, p.created_at)`;

/** The column `forecast_key` of the rows that `readNewest` gets. */
export const forecastKey = (db: Db) => db`${timeKey(db, forecastTime(db))} as forecast_key`;

interface Keyed {
  readonly id: string;
  readonly forecast_key: string;
}

export interface Listed {
  readonly cursor_key: CursorKey;
}

/** The end of a statement, after its conditions, and the order alone. */
interface Ending {
  readonly order: Fragment;
  readonly ending: Fragment;
}

type Part = Pick<PageRequest, 'limit' | 'offset'>;

const endOlder = (db: Db, after: CursorKey | null, part: Part): Ending => {
  const [time, id] = after ?? [];
  const seek =
    after === null
      ? db``
      : db`and (${forecastTime(db)}, p.id) < (${time as string}::text::timestamptz, ${id as string}::uuid)`;
  const order = db`order by ${forecastTime(db)} desc, p.id desc`;
  return { order, ending: db`${seek} ${order} ${limitToPage(db, part)}` };
};

const last_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const endRevised = (db: Db, [time, id]: CursorKey, part: Part): Ending => {
  const order = db`order by ${forecastTime(db)}, p.id`;
  return {
    order,
    ending: db`
      and p.revised_at is not null
      and (${forecastTime(db)}, p.id) > (${time as string}::text::timestamptz, ${id as string}::uuid)
      ${order}
      ${limitToPage(db, part)}`,
  };
};

/**
 * Reads at least one row more than the page. `read` runs a statement whose conditions are followed
 * by `ending`. If the statement sorts its rows once more, it does so by `order`.
 */
export const readNewest = async <R extends Keyed>(
  db: Db,
  { after, limit, offset }: PageRequest,
  read: (ending: Ending) => PromiseLike<readonly R[]>,
): Promise<readonly (R & Listed)[]> => {
  const withKey = (rows: readonly R[], start: string | null): (R & Listed)[] =>
    rows.map((row) => ({ ...row, cursor_key: [row.forecast_key, row.id, start] }));
  if (after !== null && after[2] === null) {
    return withKey(await read(endRevised(db, after, { limit, offset })), null);
  }
  const rows = await read(endOlder(db, after, { limit, offset }));
  if (after === null) return withKey(rows, rows[0]?.forecast_key ?? null);
  const start = after[2] as string;
  const older = withKey(rows, start);
  if (older.length > limit) return older;
  const rest = { limit: limit - older.length, offset: 0 };
  const revised = await read(endRevised(db, [start, last_id], rest));
  return [...older, ...withKey(revised, null)];
};
