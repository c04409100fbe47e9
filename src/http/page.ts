import { type Fault, isFault, refuseFields } from '../kit/fault.js';
import { isId, sha256 } from '../kit/ids.js';
import { parseTime } from '../kit/time.js';
import { type Answer, reply } from './route.js';

/**
 * Keyset pages: a cursor contains the sort values of the last row that was shown, so pages stay
 * correct while rows are added. A cursor belongs to one list: one path with one order and one
 * filter. Clients treat it as opaque. `offset` is for clients that count rows. It costs as much as
 * reading the rows that it skips, so it is limited.
 */

type CursorPart = string | number | null;
export type CursorKey = readonly CursorPart[];
/**
 * The kind of one value in a cursor, so that a made-up cursor is refused here and not by Postgres.
 * `number` is a 32-bit integer. `number` and `time` may be null in rows that lack them.
 */
export type CursorKind = 'id' | 'number' | 'time' | 'text';
const isInt32 = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) === ((value as number) | 0);

export interface PageRequest {
  readonly limit: number;
  /** Only rows after this key; null on the first page. */
  readonly after: CursorKey | null;
  readonly offset: number;
}

interface ListPage extends PageRequest {
  /** Identifies the list; see `listMark`. */
  readonly mark: string;
}

/** Query parameters that change how rows are shown, not which rows are listed. */
const of_pages = new Set(['limit', 'cursor', 'offset', 'include', 'format']);

/** Returns a mark that identifies a list: a part of the digest of its path, order and filter. */
export const listMark = (path: string, query: Readonly<Record<string, unknown>>): string => {
  const filter = Object.entries(query)
    .filter(([name, value]) => value !== undefined && !of_pages.has(name))
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  return sha256(JSON.stringify([path, filter]), 'base64url').slice(0, 8);
};

export const encodeCursor = (mark: string, key: CursorKey): string =>
  Buffer.from(JSON.stringify([mark, ...key])).toString('base64url');

/** Returns true for a time in the form of our rows (microseconds) that Postgres can read. */
const isTime = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/.test(text) && parseTime(text) !== null;

const fits = (part: unknown, kind: CursorKind): boolean => {
  if (kind === 'id') return typeof part === 'string' && isId(part);
  if (kind === 'text') return typeof part === 'string' && !part.includes('\0');
  if (part === null) return true;
  if (kind === 'time') return typeof part === 'string' && isTime(part);
  return isInt32(part);
};

/** Returns the key in a cursor, or null if this list never issued the cursor. */
export const decodeCursor = (
  mark: string,
  cursor: string,
  kinds: readonly CursorKind[],
): CursorKey | null => {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts[0] !== mark) return null;
  const key: readonly unknown[] = parts.slice(1);
  if (key.length !== kinds.length) return null;
  return kinds.every((kind, index) => fits(key[index], kind)) ? (key as CursorKey) : null;
};

/** Refuses a cursor that its list never issued. */
export const refuseCursor = (): Fault =>
  refuseFields(
    [{ path: 'query.cursor', message: 'must be next_cursor of the previous page' }],
    'The cursor does not belong to this list. Send next_cursor of the previous page with the ' +
      'same filters and sort, or no cursor to start again.',
  );

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly offset?: number;
}

/** Returns the requested page, or a fault if the cursor does not belong to the list at `path`. */
export const readPage = (
  path: string,
  query: PageQuery,
  kinds: readonly CursorKind[],
): ListPage | Fault => {
  const { limit, cursor, offset = 0 } = query;
  const mark = listMark(path, { ...query });
  if (cursor === undefined) return { mark, limit, after: null, offset };
  const after = decodeCursor(mark, cursor, kinds);
  return after === null ? refuseCursor() : { mark, limit, after, offset: 0 };
};

export interface Page<R> {
  readonly rows: readonly R[];
  readonly next_cursor: string | null;
}

/** Cuts `limit + 1` fetched rows to a page. The extra row only shows that there are more. */
export const makePage = <R>(
  fetched: readonly R[],
  { mark, limit }: Pick<ListPage, 'mark' | 'limit'>,
  keyOf: (row: R) => CursorKey,
): Page<R> => {
  if (fetched.length <= limit) return { rows: fetched, next_cursor: null };
  const rows = fetched.slice(0, limit);
  return { rows, next_cursor: encodeCursor(mark, keyOf(rows[limit - 1] as R)) };
};

/** Returns a `Link: rel="next"` header that repeats the query; no header on the last page. */
export const pageHeaders = (
  path: string,
  query: Readonly<Record<string, unknown>>,
  next_cursor: string | null,
): Record<string, string> => {
  if (next_cursor === null) return {};
  const next = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && name !== 'offset' && name !== 'cursor')
      next.set(name, String(value));
  }
  next.set('cursor', next_cursor);
  return { Link: `<${path}?${next.toString()}>; rel="next"` };
};

interface List<R> {
  readonly path: string;
  readonly query: PageQuery;
  readonly plural: string;
  /** Reads one row more than the page, to know whether it is the last page. */
  read(page: PageRequest): Promise<readonly R[]>;
  /** Returns the members of the answer besides the rows. */
  count(): Promise<{ readonly total: number }>;
  show?(row: R): object;
  /** May be missing if the id alone is the key. */
  readonly kinds?: readonly CursorKind[];
  keyOf?(row: R): CursorKey;
}

/** Answers with a page of a list, its total and the link to the next page. */
export const replyPage = async <R extends { readonly id: string }>(
  list: List<R>,
): Promise<Answer> => {
  const { path, query, plural, show = (row: R) => row, kinds = ['id'] } = list;
  const { keyOf = ({ id }: R) => [id] } = list;
  const page = readPage(path, query, kinds);
  if (isFault(page)) return page;
  const [fetched, counted] = await Promise.all([list.read(page), list.count()]);
  const { rows, next_cursor } = makePage(fetched, page, keyOf);
  const body = { ...counted, [plural]: rows.map(show), next_cursor };
  return reply(200, body, pageHeaders(path, { ...query }, next_cursor));
};
