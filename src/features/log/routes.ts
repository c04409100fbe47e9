import { type TObject, Type } from '@sinclair/typebox';
import { etagOf } from '../../http/body.js';
import type { Deps } from '../../http/deps.js';
import { pageHeaders, refuseCursor } from '../../http/page.js';
import { queryByPost } from '../../http/query-by-post.js';
import {
  type Context,
  type Reply,
  reply,
  replyRaw,
  replyStream,
  routeFor,
} from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { ws_faults } from '../../socket/frames.js';
import { refuseUnknown } from '../events/filter.js';
import {
  type DigestTracker,
  listPoints,
  readDigest,
  readHead,
  readOldest,
} from '../events/index.js';
import { eventText, type LogEntry } from '../events/log-entry.js';
import { findNarrowing, findPlacing } from '../events/narrowing.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { type LogQuery, readLogQuery } from './log-query.js';
import * as wire from './schema.js';
import type { LogConnection, LogPage, LogParts, LogWatch } from './watch.js';

/** The event log over HTTP: pages, long polls and a stream, with the websocket's cursor. */

type Parts = Deps &
  LogParts &
  TaxonomyParts & {
    readonly digests: DigestTracker;
    /** How often a quiet stream sends a tick, ± 10 %. */
    readonly tick_ms: number;
  };

const route = routeFor<Parts>();

const logQueryOf = (
  { query, caller }: Pick<Context<unknown, wire.StreamQuery>, 'query' | 'caller'>,
  { taxonomy }: TaxonomyParts,
): LogQuery | Fault => {
  const { topic: labels, events, question_ids, categories, model_family, min_confidence } = query;
  const filter = { events, question_ids, categories, model_family, min_confidence };
  return readLogQuery({ labels, filter }, { caller, pillars: taxonomy.latest(), path: 'query' });
};

const narrowing_names = [
  'topic',
  'events',
  'question_ids',
  'categories',
  'model_family',
  'min_confidence',
];
const to_narrow = `is not known here: use ${narrowing_names.join(', ')}`;
const to_place = 'is not known here: use after, the offset of the newest event that you have';

/**
 * Refuses unknown parameters that ask for a part of the log or a place in it. A known parameter
 * without a value is refused too, because it must not mean everything.
 */
const refuseUnknownNames = (
  { request, body }: Pick<Context, 'request' | 'body'>,
  { properties }: TObject,
): Fault | null => {
  const known = Object.keys(properties);
  const given = body ?? Object.fromEntries(new URLSearchParams(request.query));
  const empty = narrowing_names.filter((name) => (given as Record<string, unknown>)[name] === '');
  const fields = [
    ...findNarrowing(given, known).map((name) => [name, to_narrow] as const),
    ...findPlacing(given, known).map((name) => [name, to_place] as const),
    ...empty.map((name) => [name, 'must have a value: send one, or leave it out'] as const),
  ].map(([name, message]) => ({ path: `query.${name}`, message }));
  return refuseUnknown('query', fields);
};

/** True if the answer can contain private events. Such an answer must not be cached. */
const isPrivate = ({ refs }: LogQuery): boolean => refs.some(({ label }) => label === 'me');

/** Returns the gap, or null if the answer continues right after `after`. */
const findGap = async (watch: LogWatch, after: number | undefined): Promise<wire.Gap | null> => {
  if (after === undefined) return null;
  if (!(await watch.hasReached(after))) return { reason: 'epoch', after, until: watch.head() };
  const until = watch.oldest() - 1;
  return after < until ? { reason: 'expired', after, until } : null;
};

const offset_text = /^\d{1,15}$/;
const readAfter = (text: string): number | Fault =>
  offset_text.test(text) ? Number(text) : refuseCursor();

type EventsContext = Context<unknown, wire.EventsQuery>;

/** Waits for a wanted event. Returns the new page, or a fault if the caller may no longer read. */
const awaitPage = async (
  ctx: EventsContext,
  watch: LogWatch,
  wanted: LogQuery,
  page: LogPage,
): Promise<LogPage | Fault> => {
  const { query } = ctx;
  const connection = watch.connections.open(ctx);
  if (isFault(connection)) return connection;
  const { wait, end } = watch.awaitNext(wanted, query.wait * 1_000);
  connection.endWait = end;
  ctx.onGone(end);
  const { woken, up_to } = await wait;
  connection.close();
  if (connection.revoked !== null) return connection.revoked;
  const after = Math.max(page.next, up_to);
  return woken === 'event' ? watch.read(wanted, after, query.limit) : { entries: [], next: after };
};

const wantsLines = (ctx: EventsContext): boolean =>
  ctx.query.format === 'ndjson' ||
  (ctx.query.format === undefined && ctx.header('accept').includes('application/x-ndjson'));

const listEvents = async (ctx: EventsContext, parts: Parts): Promise<Reply | Fault> => {
  const { log_watch: watch } = parts;
  const { query } = ctx;
  const wanted = refuseUnknownNames(ctx, wire.events_query) ?? logQueryOf(ctx, parts);
  if (isFault(wanted)) return wanted;
  const given = query.cursor === undefined ? query.after : readAfter(query.cursor);
  if (isFault(given)) return given;
  const gap = await findGap(watch, given);
  const after = gap?.until ?? given ?? Math.max(0, watch.oldest() - 1);
  let page: LogPage | Fault = await watch.read(wanted, after, query.limit);
  if (query.wait > 0 && page.entries.length === 0 && gap === null && page.next >= watch.head()) {
    page = await awaitPage(ctx, watch, wanted, page);
    if (isFault(page)) return page;
  }
  const { next } = page;
  const head = Math.max(watch.head(), next);
  const next_cursor = next < head ? String(next) : null;
  const state = { gap, next, next_cursor, head, oldest: watch.oldest() };
  // If a page is full and ends before the head, its events never change.
  const is_behind = given !== undefined && gap === null && page.entries.length === query.limit;
  const is_final = is_behind && next < head && !isPrivate(wanted);
  const { cursor: _cursor, after: _after, wait: _wait, ...kept } = query;
  const headers = {
    ...pageHeaders('/api/events', kept, next_cursor),
    'X-Log-Next': String(next),
    'X-Log-Head': String(head),
    'X-Log-Oldest': String(state.oldest),
    Vary: 'Accept',
    ...(isPrivate(wanted) && { 'Cache-Control': 'no-store' }),
    ...(is_final && { 'Cache-Control': 'public, immutable, max-age=31536000' }),
  };
  // Sent as text, because each event must keep the exact bytes of the record.
  const texts = page.entries.map(eventText);
  const etag = is_final ? { etag: etagOf(`${next} ${texts.join('\n')}`) } : {};
  if (wantsLines(ctx)) {
    const lines = gap === null ? texts : [JSON.stringify({ gap }), ...texts];
    const text = lines.map((line) => `${line}\n`).join('');
    return { ...replyRaw('application/x-ndjson', text, headers), ...etag };
  }
  const text = `{"events":[${texts.join(',')}],${JSON.stringify(state).slice(1)}`;
  return { ...replyRaw('application/json', text, headers), ...etag };
};

const read_faults = [
  ws_faults.INVALID_TOPIC,
  ws_faults.INVALID_FILTER,
  ws_faults.TOO_MANY_CONNECTIONS,
  common_faults.MISSING_AUTH,
  common_faults.INVALID_API_KEY,
  common_faults.ACCOUNT_SUSPENDED,
  common_faults.AGENTS_ONLY,
];

const events = route({
  id: 'listEvents',
  method: 'GET',
  path: '/api/events',
  summary: 'Read the events of the log after an offset, or wait for the next one',
  tag: 'events',
  auth: 'public',
  query: wire.events_query,
  returns: { 200: wire.events_answer },
  also_produces: ['application/x-ndjson'],
  faults: read_faults,
  cacheable: true,
  longest_ms: (wire.wait_most_s + 15) * 1_000,
  handle: listEvents,
});

const readDigests = async (
  { query }: Context<unknown, wire.DigestQuery>,
  { sql }: Deps,
): Promise<Reply | Fault> => {
  const given = query.cursor === undefined ? query.from : readAfter(query.cursor);
  if (isFault(given)) return given;
  const [points, head, oldest] = await Promise.all([
    listPoints(sql, given, query.limit + 1),
    readHead(sql),
    readOldest(sql),
  ]);
  const at = await readDigest(sql, query.at ?? head);
  if (at === 'unknown') return refuse(wire.log_faults.DIGEST_UNKNOWN);
  if (at === 'late') return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
  const digests = points.slice(0, query.limit);
  const last = points.length > query.limit ? digests.at(-1) : undefined;
  const next_cursor = last === undefined ? null : String(last.offset + 1);
  const { from: _from, ...kept } = query;
  const headers = pageHeaders('/api/events/digest', kept, next_cursor);
  return reply(200, { digests, at, head, oldest, next_cursor }, headers);
};

const digest = route({
  id: 'readDigests',
  method: 'GET',
  path: '/api/events/digest',
  summary:
    'The rolling digest of the public log, at every 1,000 offsets and at an offset that you choose',
  tag: 'events',
  auth: 'public',
  query: wire.digest_query,
  returns: { 200: wire.digest_answer },
  faults: [wire.log_faults.DIGEST_UNKNOWN],
  cacheable: true,
  handle: readDigests,
});

/**
 * A stream of server-sent events: missed events first, then new ones, in order, without gaps or
 * repeats. It runs at the pace of its reader and only tracks an offset, so nothing is queued. A
 * slow reader is further back in the log. A stalled reader is disconnected and resumes after the
 * last id that it has seen.
 */

/** How long a stream lives, ± 20 %. */
const lifetime_ms = 4 * 3_600_000;
/** Reconnections after a shutdown are spread over this time. */
const spread_ms = 5_000;
const page_size = 100;
const retry_ms = 1_000;
/** A replaced stream reconnects later, so that live streams do not keep replacing each other. */
const replaced_retry_ms = 30_000;

interface StreamOptions {
  readonly watch: LogWatch;
  readonly tick_ms: number;
  readonly digests: DigestTracker;
  readonly wanted: LogQuery;
  /** The topics, as the client named them. */
  readonly labels: readonly string[];
  readonly after: number;
  readonly gap: wire.Gap | null;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  readonly connection: LogConnection;
}

/** Log events have no SSE name, so that a listener for messages gets all of them. */
const logEvent = (entry: LogEntry): string => `id: ${entry.offset}\ndata: ${eventText(entry)}\n\n`;

/** JSON has no line breaks, so the data is one line. */
const namedEvent = (name: string, data: object, fields = ''): string =>
  `${fields}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

const around = (ms: number, share: number): number => ms * (1 - share + 2 * share * Math.random());

const welcome = ({ watch, tick_ms, labels, after, gap }: StreamOptions): string => {
  const place = { topics: labels, after, head: watch.head(), oldest: watch.oldest() };
  const data = { ...place, tick_ms, time: new Date().toISOString() };
  const frame = namedEvent('welcome', data, `retry: ${retry_ms}\n`);
  return gap === null ? frame : frame + namedEvent('gap', gap);
};

const tick = (head: number, digest: string | undefined): string =>
  namedEvent('tick', { head, digest, time: new Date().toISOString() }, `id: ${head}\n`);

const reconnectAfter = (reason: string): number => {
  if (reason === 'replaced') return replaced_retry_ms;
  return reason === 'draining' ? Math.round(spread_ms * Math.random()) : retry_ms;
};

const bye = (reason: string): string => {
  const reconnect_ms = reconnectAfter(reason);
  return namedEvent('bye', { reason, reconnect_ms }, `retry: ${reconnect_ms}\n`);
};

async function* streamEvents(options: StreamOptions): AsyncGenerator<string> {
  const { watch, tick_ms, digests, wanted, signal, connection } = options;
  const ends_ms = performance.now() + around(lifetime_ms, 0.2);
  const findEnd = (): string | null => {
    if (connection.revoked !== null) return 'credential';
    if (connection.is_replaced) return 'replaced';
    if (watch.hasEnded()) return 'draining';
    return performance.now() > ends_ms ? 'lifetime' : null;
  };
  let cursor = options.after;
  yield welcome(options);
  while (!signal.aborted) {
    const reason = findEnd();
    if (reason !== null) {
      yield bye(reason);
      return;
    }
    const { entries, next } = await watch.read(wanted, cursor, page_size);
    cursor = next;
    if (entries.length > 0) yield entries.map(logEvent).join('');
    if (cursor < watch.head() || findEnd() !== null) continue;
    const left_ms = Math.max(0, ends_ms - performance.now());
    const waiting = watch.awaitNext(wanted, Math.min(around(tick_ms, 0.1), left_ms));
    connection.endWait = waiting.end;
    const { woken, up_to } = await waiting.wait;
    cursor = Math.max(cursor, up_to);
    if (woken === 'late') yield tick(cursor, digests.at(cursor));
  }
}

/** Returns where to start. A client that reconnects sends its last id in a header or the query. */
const placeOf = (ctx: Context<unknown, wire.StreamQuery>): number | undefined | Fault => {
  const header = ctx.header('last-event-id').trim();
  const { lastEventId = '', after } = ctx.query;
  const seen = header === '' ? lastEventId : header;
  if (seen === '') return after;
  if (offset_text.test(seen)) return Number(seen);
  const path = header === '' ? 'query.lastEventId' : 'header.last-event-id';
  const message = 'must be the id of an event of this stream, a whole number';
  return refuseFields([{ path, message }]);
};

const stream_headers = {
  'Cache-Control': 'no-store',
  // Proxies that buffer responses would hold a stream back forever.
  'X-Accel-Buffering': 'no',
  // After a shutdown, clients must not reuse their connection to the old process.
  Connection: 'close',
};

const openStream = async (
  ctx: Context<unknown, wire.StreamQuery>,
  parts: Parts,
): Promise<Reply | Fault> => {
  const { log_watch: watch, tick_ms, digests } = parts;
  const wanted = refuseUnknownNames(ctx, wire.stream_query) ?? logQueryOf(ctx, parts);
  if (isFault(wanted)) return wanted;
  const given = placeOf(ctx);
  if (isFault(given)) return given;
  const gap = await findGap(watch, given);
  const connection = watch.connections.open(ctx);
  if (isFault(connection)) return connection;
  return replyStream(
    'text/event-stream',
    {
      produce: (signal) => {
        signal.addEventListener('abort', () => connection.endWait());
        const after = gap?.until ?? given ?? watch.head();
        return streamEvents({
          watch,
          tick_ms,
          digests,
          wanted,
          labels: ctx.query.topic,
          after,
          gap,
          signal,
          connection,
        });
      },
      onEnd: connection.close,
    },
    stream_headers,
  );
};

const stream = route({
  id: 'streamEvents',
  method: 'GET',
  path: '/api/stream',
  summary: 'The log as server-sent events: missed events first, then new ones',
  tag: 'events',
  auth: 'public',
  query: wire.stream_query,
  returns: { 200: Type.String() },
  produces: 'text/event-stream',
  faults: read_faults,
  is_endless: true,
  handle: openStream,
});

/** Websockets do not reach this route. Other requests learn that they must upgrade. */
const plainSocket = route({
  id: 'plainSocket',
  method: 'GET',
  path: '/ws',
  summary: 'The websocket, requested without an upgrade',
  tag: 'events',
  auth: 'public',
  returns: {},
  faults: [wire.log_faults.UPGRADE_REQUIRED],
  documented: false,
  allows_key_in_query: true,
  handle: () =>
    refuse(wire.log_faults.UPGRADE_REQUIRED, {
      headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
    }),
});

export const routes = [
  events,
  queryByPost(events, 'queryEvents'),
  digest,
  stream,
  queryByPost(stream, 'queryStream'),
  plainSocket,
];
