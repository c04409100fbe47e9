import { LRUCache } from 'lru-cache';
import { isFault } from '../kit/fault.js';
import { namedTypes } from './accept.js';
import { etagOf, matchesEtag } from './body.js';
import { type Headers, isHeaderText, type Request, requestId } from './call.js';
import type { Answer, CacheRule, Reply, Route } from './route.js';
import type { HttpRequest, HttpResponse } from './uws.js';

/**
 * Caches the responses of cacheable routes as bytes, for anonymous GET requests. A cached response
 * is sent before limits are counted and is not logged; metrics count it.
 *
 * An entry is renewed after one second, a page after five, because votes, edits and hiding have no
 * event. An event of its tag, or a change made in this process, removes an entry. A page stays, and
 * is renewed as soon as it is a second old. While one caller renews an entry, others get the old
 * response for at most one second more.
 *
 * A page takes long to make, so its visitors do not wait for a renewal, and only a few pages are
 * renewed at once. If there is no room, a page grows older, by ten seconds at most. Visitors with a
 * session, and requests for a fresh page, always wait: open pages send `Cache-Control: no-cache`
 * after an event, and browsers send it on reload.
 */
export type ResponseCache = ReturnType<typeof createResponseCache>;

/** The cache rule of a route, and the facts about a call to it. */
interface Cached {
  readonly rule: CacheRule<never>;
  readonly params: unknown;
  readonly query: Route['query'];
  readonly is_page: boolean;
  /** The headers that every answer of the route has. */
  readonly fixed_headers: Headers;
}

interface Entry {
  readonly tag: string;
  readonly is_page: boolean;
  readonly made_ms: number;
  /** True for a page that was invalidated. */
  is_changed: boolean;
  /** After this time the entry must be renewed. */
  due_ms: number;
  readonly reply: Reply;
  readonly etag: string;
  readonly body: Buffer;
  readonly headers: Headers;
}

interface Renewal {
  readonly tag: string;
  readonly answer: Promise<Answer>;
}

const longest_ms = 1_000;
const longest_page_ms = 5_000;
/** After this time more, an old entry is no longer served. */
const max_old_ms = 1_000;
const max_old_page_ms = 10_000;
/** Maximum number of pages that are renewed at once while visitors get the old ones. */
const max_renewed_pages = 2;
/** Marks a page as changed. A page that changes all the time is renewed once a second. */
const noteChange = (page: Entry): Entry => {
  page.is_changed = true;
  const soonest_ms = Math.max(performance.now(), page.made_ms + longest_ms);
  page.due_ms = Math.min(page.due_ms, soonest_ms);
  return page;
};

/** Returns true if an entry may answer a request for a fresh response. */
const isFresh = ({ made_ms, is_changed }: Entry): boolean =>
  !is_changed && performance.now() <= made_ms + longest_ms;
const max_bytes = 64 * 1_048_576;
/** Enough for a page of ten long forecasts. Larger responses are rare and are not cached. */
const max_entry_bytes = 262_144;

/** The key includes the requested media types, because one address may offer several. */
const keyOf = (path: string, query: string, accept: string): string =>
  `${namedTypes(accept)} ${path}?${query}`;

/** Routes ignore unknown query parameters, so these would only add copies of a response. */
const hasKnownQuery = (text: string, known: Route['query']): boolean =>
  [...new URLSearchParams(text).keys()].every((name) =>
    Object.hasOwn(known?.properties ?? {}, name),
  );

type OfEntry = Pick<Entry, 'tag' | 'is_page'> & Pick<Cached, 'fixed_headers'>;

/** Returns an entry for a whole, successful response without its own `Cache-Control`, else null. */
const makeEntry = ({ tag, is_page, fixed_headers }: OfEntry, reply: Reply): Entry | null => {
  const { status, content_type, headers = {} } = reply;
  const sent_body = content_type === undefined ? JSON.stringify(reply.body) : reply.body;
  const is_whole = typeof sent_body === 'string' || sent_body instanceof Uint8Array;
  if (status !== 200 || !is_whole || headers['Cache-Control'] !== undefined) return null;
  if (!Object.values(headers).every(isHeaderText)) return null;
  const body = Buffer.from(sent_body as string);
  if (body.byteLength > max_entry_bytes) return null;
  const etag = etagOf(body);
  const sent = [
    ['ETag', etag],
    ['Content-Type', content_type ?? 'application/json'],
    ['Cache-Control', 'public, no-cache'],
    ...fixed_headers,
    ...Object.entries(headers),
  ] as const;
  const made_ms = performance.now();
  const due_ms = made_ms + (is_page ? longest_page_ms : longest_ms);
  const kept = { ...reply, content_type: content_type ?? 'application/json', body, etag };
  return {
    tag,
    is_page,
    made_ms,
    is_changed: false,
    due_ms,
    reply: kept,
    etag,
    body,
    headers: sent,
  };
};

type Make = () => Answer | Promise<Answer>;

/** Returns true if the request must bypass caches, for example because a browser reloads a page. */
const wantsFresh = (cache_control: string): boolean => /no-cache|max-age=0/.test(cache_control);

const credentials = ['x-api-key', 'authorization', 'x-admin-key', 'cookie'];

const send = (res: HttpResponse, req: HttpRequest, { etag, headers, body }: Entry): void => {
  const is_known = matchesEtag(req.getHeader('if-none-match'), etag);
  if (is_known) res.writeStatus('304 Not Modified');
  res.writeHeader('X-Request-Id', requestId(req.getHeader('x-request-id')));
  for (const [name, value] of headers) res.writeHeader(name, value);
  if (is_known) res.endWithoutBody();
  else res.end(body);
};

export const createResponseCache = () => {
  const entries = new LRUCache<string, Entry>({
    maxSize: max_bytes,
    sizeCalculation: ({ body }, key) => body.byteLength + key.length,
    ttl: longest_page_ms + max_old_page_ms,
    dispose: ({ tag }, key, reason) => {
      if (reason !== 'set') keys_by_tag.get(tag)?.delete(key);
      if (keys_by_tag.get(tag)?.size === 0) keys_by_tag.delete(tag);
    },
  });
  const keys_by_tag = new Map<string, Set<string>>();
  const renewals = new Map<string, Renewal>();
  let hits = 0;
  let renewed_pages = 0;

  /** Returns true if the first visitor of an old entry starts its renewal. */
  const isRenewed = (key: string, { is_page }: Entry): boolean =>
    !renewals.has(key) && (!is_page || renewed_pages < max_renewed_pages);

  const store = (key: string, entry: Entry): void => {
    entries.set(key, entry);
    const keys = keys_by_tag.get(entry.tag) ?? new Set();
    keys_by_tag.set(entry.tag, keys.add(key));
  };

  /** Returns an entry that may still be served. */
  const find = (key: string): Entry | undefined => {
    const entry = entries.get(key);
    if (entry === undefined) return undefined;
    const old_ms = performance.now() - entry.due_ms;
    return old_ms <= (entry.is_page ? max_old_page_ms : max_old_ms) ? entry : undefined;
  };

  /**
   * Makes a response and stores it. If it was invalidated meanwhile, it is not stored, but a page
   * replaces an older page until it is renewed.
   */
  const renew = (key: string, of_entry: OfEntry, make: Make) => {
    const began_ms = performance.now();
    const run = async (): Promise<Answer> => {
      try {
        const answer = await make();
        const entry = isFault(answer) ? null : makeEntry(of_entry, answer);
        const is_older = (entries.get(key)?.made_ms ?? 0) < began_ms;
        if (entry !== null && renewals.get(key) === renewal) store(key, entry);
        else if (entry?.is_page && is_older) store(key, noteChange(entry));
        // Already encoded, so that waiting callers do not each encode it again.
        return entry?.reply ?? answer;
      } finally {
        if (renewals.get(key) === renewal) renewals.delete(key);
      }
    };
    const renewal: Renewal = { tag: of_entry.tag, answer: Promise.resolve().then(run) };
    renewals.set(key, renewal);
    return renewal.answer;
  };

  return {
    /** Answers a GET from the cache, with the common headers. Returns false if it cannot. */
    answer(res: HttpResponse, req: HttpRequest, common_headers: Headers): boolean {
      const key = keyOf(req.getUrl(), req.getQuery() ?? '', req.getHeader('accept'));
      const entry = find(key);
      if (entry === undefined) return false;
      const is_old = performance.now() > entry.due_ms;
      if (is_old && isRenewed(key, entry)) return false;
      if (!isFresh(entry) && wantsFresh(req.getHeader('cache-control'))) return false;
      if (credentials.some((name) => req.getHeader(name) !== '')) return false;
      hits += 1;
      send(res, req, { ...entry, headers: [...entry.headers, ...common_headers] });
      return true;
    },
    /** Returns the result of `make`. Concurrent requests for a response share one run of it. */
    async share(
      request: Request,
      { rule, params, query, is_page, fixed_headers }: Cached,
      make: Make,
    ): Promise<Answer> {
      if (!hasKnownQuery(request.query, query)) return make();
      const key = keyOf(request.path, request.query, request.header('accept'));
      const of_entry = { tag: rule.tag(params as never), is_page, fixed_headers };
      const old = find(key);
      const waits =
        !is_page ||
        old === undefined ||
        request.header('cookie') !== '' ||
        wantsFresh(request.header('cache-control'));
      if (waits) return renewals.get(key)?.answer ?? renew(key, of_entry, make);
      if (isRenewed(key, old)) {
        renewed_pages += 1;
        const ended = (): void => {
          renewed_pages -= 1;
        };
        // If the renewal fails, only callers that wait for it get the error.
        renew(key, of_entry, make).then(ended, ended);
      }
      return old.reply;
    },
    invalidate(tag: string): void {
      for (const key of [...(keys_by_tag.get(tag) ?? [])]) {
        const entry = entries.get(key);
        if (entry?.is_page) noteChange(entry);
        else entries.delete(key);
      }
      for (const [key, renewal] of renewals) if (renewal.tag === tag) renewals.delete(key);
    },
    stats: () => ({ entries: entries.size, bytes: entries.calculatedSize, hits }),
  };
};
