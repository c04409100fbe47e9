import { common_faults, type Fault, isFault, refuse } from '../kit/fault.js';
import { isId } from '../kit/ids.js';
import { parseTime } from '../kit/time.js';
import { type Answer, reply } from './route.js';

/**
 * Keyset pages: a cursor names the last row that was shown by the values the list is sorted by, so
 * a page stays right while rows are added. Clients treat the cursor as opaque. `offset` is for
 * clients that count; it costs as much as the rows it skips and is therefore bounded.
 */

type CursorPart = string | number | null;
export type CursorKey = readonly CursorPart[];
/**
 * The kind of a part of a cursor, so that a made-up cursor is refused here and not by Postgres.
 * `number`: an integer within 32 bits. `number` and `time` may be null in rows that lack them.
 */
export type CursorKind = 'id' | 'number' | 'time' | 'text';
const isInt32 = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) === ((value as number) | 0);

export interface PageRequest {
  readonly limit: number;
  /** Rows after this key only; null on the first page. */
  readonly after: CursorKey | null;
  readonly offset: number;
}

export const encodeCursor = (key: CursorKey): string =>
  Buffer.from(JSON.stringify(key)).toString('base64url');

/** A time as rows show it, to the microsecond at most: what Postgres reads without an error. */
const isTime = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/.test(text) && parseTime(text) !== null;

const fits = (part: unknown, kind: CursorKind): boolean => {
  if (kind === 'id') return typeof part === 'string' && isId(part);
  if (kind === 'text') return typeof part === 'string' && !part.includes('\0');
  if (part === null) return true;
  if (kind === 'time') return typeof part === 'string' && isTime(part);
  return isInt32(part);
};

/** The key inside a cursor, or null when this list never gave it out. */
export const decodeCursor = (cursor: string, kinds: readonly CursorKind[]): CursorKey | null => {
  let key: unknown;
  try {
    key = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
  if (!Array.isArray(key) || key.length !== kinds.length) return null;
  return kinds.every((kind, index) => fits(key[index], kind)) ? (key as CursorKey) : null;
};

/** The refusal of a cursor that its list never gave out. */
export const refuseCursor = (): Fault =>
  refuse(common_faults.INVALID_REQUEST, {
    message:
      'The cursor is not one of this list: send next_cursor of the page before, with the same ' +
      'sort, or leave cursor out to begin again.',
    fields: [{ path: 'query.cursor', message: 'must be next_cursor of the page before' }],
  });

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly offset?: number;
}

/** The page that a client asks for; a fault when the cursor is not one of this list. */
export const readPage = (query: PageQuery, kinds: readonly CursorKind[]): PageRequest | Fault => {
  if (query.cursor === undefined) {
    return { limit: query.limit, after: null, offset: query.offset ?? 0 };
  }
  const after = decodeCursor(query.cursor, kinds);
  if (after === null) return refuseCursor();
  return { limit: query.limit, after, offset: 0 };
};

export interface Page<R> {
  readonly rows: readonly R[];
  readonly next_cursor: string | null;
}

/** Cuts `limit + 1` fetched rows to a page; the extra row only says that there is more. */
export const makePage = <R>(
  fetched: readonly R[],
  limit: number,
  keyOf: (row: R) => CursorKey,
): Page<R> => {
  if (fetched.length <= limit) return { rows: fetched, next_cursor: null };
  const rows = fetched.slice(0, limit);
  return { rows, next_cursor: encodeCursor(keyOf(rows[limit - 1] as R)) };
};

/** `Link: rel="next"` of a page, with the other members of the query kept; nothing on the last. */
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
  /** One row more than the page, to know whether it ends. */
  read(page: PageRequest): Promise<readonly R[]>;
  /** The members of the answer besides the rows. */
  count(): Promise<{ readonly total: number }>;
  show?(row: R): object;
  /** Left out where the id alone is the key. */
  readonly kinds?: readonly CursorKind[];
  keyOf?(row: R): CursorKey;
}

/** Answers with a page of a list, its total and the link to the next page. */
export const replyPage = async <R extends { readonly id: string }>(
  list: List<R>,
): Promise<Answer> => {
  const { path, query, plural, show = (row: R) => row, kinds = ['id'] } = list;
  const { keyOf = ({ id }: R) => [id] } = list;
  const page = readPage(query, kinds);
  if (isFault(page)) return page;
  const [fetched, counted] = await Promise.all([list.read(page), list.count()]);
  const { rows, next_cursor } = makePage(fetched, page.limit, keyOf);
  const body = { ...counted, [plural]: rows.map(show), next_cursor };
  return reply(200, body, pageHeaders(path, { ...query }, next_cursor));
};
