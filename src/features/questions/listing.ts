import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault } from '../../kit/fault.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import type { ListedRow } from './lists-store.js';
import { countQuestions, keyOf, type ListAsk, listQuestions, sort_kinds } from './lists-store.js';

export interface Listing {
  readonly total: number;
  readonly rows: readonly ListedRow[];
  readonly next_cursor: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly offset?: number;
}

/** One page of a list with its total and its link to the next one. */
export const readListing = async (
  { sql }: Pick<Deps, 'sql'>,
  path: string,
  { ask, query }: { ask: ListAsk; query: PageQuery },
): Promise<Listing | Fault> => {
  const page_ask = readPage(query, sort_kinds[ask.sort]);
  if (isFault(page_ask)) return page_ask;
  const [fetched, total] = await Promise.all([
    listQuestions(sql, ask, page_ask),
    countQuestions(sql, ask),
  ]);
  const { rows, next_cursor } = makePage(fetched, page_ask.limit, keyOf);
  const headers = pageHeaders(path, query as unknown as Record<string, unknown>, next_cursor);
  return { total, rows, next_cursor, headers };
};
