import { Type } from '@sinclair/typebox';
import { pageHeaders, refuseCursor } from '../../http/page.js';
import type { Context } from '../../http/route.js';
import { type Reply, replyRaw, replyStream, routeFor } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { type TopicRef, ws_faults } from '../../socket/frames.js';
import { readFilter, resolveTopic } from '../events/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import {
  type EventsQuery,
  events_answer,
  events_query,
  type Gap,
  log_faults,
  type StreamQuery,
  stream_query,
  wait_most_s,
} from './schema.js';
import { eventText, streamEvents } from './stream.js';
import type { LogPage, LogParts, LogWatch, Wanted } from './watch.js';

/** The event log over HTTP: pages, long-polls and a stream, over the cursor of the websocket. */

type Parts = LogParts & TaxonomyParts;

const route = routeFor<Parts>();

type Ask = Pick<Context<unknown, StreamQuery>, 'query' | 'caller'>;

/** The topics and the filter, as far as this caller may have them. */
const readWanted = ({ query, caller }: Ask, { taxonomy }: TaxonomyParts): Wanted | Fault => {
  const pillars = taxonomy.latest();
  const { topic, events, question_ids, categories, model_family, min_confidence } = query;
  const given = { events, question_ids, categories, model_family, min_confidence };
  const filter = readFilter(given, { pillars, path: 'query' });
  if (isFault(filter)) return filter;
  const refs = new Map<string, TopicRef>();
  for (const label of topic) {
    const ref = resolveTopic(label, caller, pillars);
    if (isFault(ref)) return ref;
    refs.set(ref.topic, { ...ref, ...(filter && { filter }) });
  }
  return { refs: [...refs.values()], topics: new Set(refs.keys()), filter };
};

/** Private events are for the eyes of one caller, and for no cache. */
const isPrivate = ({ refs }: Wanted): boolean => refs.some(({ label }) => label === 'me');

/** What to say where the answer does not go on right after `after`. */
const findGap = async (watch: LogWatch, after: number | undefined): Promise<Gap | null> => {
  if (after === undefined) return null;
  if (!(await watch.hasReached(after))) return { reason: 'epoch', after, until: watch.head() };
  const until = watch.oldest() - 1;
  return after < until ? { reason: 'expired', after, until } : null;
};

const readAfter = (text: string): number | Fault =>
  /^\d{1,15}$/.test(text) ? Number(text) : refuseCursor();

type EventsContext = Context<unknown, EventsQuery>;

/** Waits for something wanted; what there is then, or why the caller may no longer have it. */
const awaitPage = async (
  ctx: EventsContext,
  watch: LogWatch,
  wanted: Wanted,
  page: LogPage,
): Promise<LogPage | Fault> => {
  const { query } = ctx;
  const visit = watch.visitors.enter(ctx);
  if (isFault(visit)) return visit;
  const { wait, end } = watch.awaitNext(wanted, query.wait * 1_000);
  visit.endWait = end;
  ctx.onGone(end);
  const { woken, up_to } = await wait;
  visit.leave();
  if (visit.revoked !== null) return visit.revoked;
  const after = Math.max(page.next, up_to);
  return woken === 'event' ? watch.read(wanted, after, query.limit) : { entries: [], next: after };
};

const wantsLines = (ctx: EventsContext): boolean =>
  ctx.query.format === 'ndjson' ||
  (ctx.query.format === undefined && ctx.header('accept').includes('application/x-ndjson'));

const listEvents = async (ctx: EventsContext, parts: Parts): Promise<Reply | Fault> => {
  const { log_watch: watch } = parts;
  const { query } = ctx;
  const wanted = readWanted(ctx, parts);
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
  const told = { gap, next, next_cursor, head, oldest: watch.oldest() };
  const { cursor: _cursor, after: _after, wait: _wait, ...kept } = query;
  const headers = {
    ...pageHeaders('/api/events', kept, next_cursor),
    'X-Log-Next': String(next),
    'X-Log-Head': String(head),
    'X-Log-Oldest': String(told.oldest),
    Vary: 'Accept',
    ...(isPrivate(wanted) && { 'Cache-Control': 'no-store' }),
  };
  // Text, because an event is the bytes of the record, whatever is written around it.
  const texts = page.entries.map(eventText);
  if (wantsLines(ctx)) {
    const lines = gap === null ? texts : [JSON.stringify({ gap }), ...texts];
    return replyRaw('application/x-ndjson', lines.map((line) => `${line}\n`).join(''), headers);
  }
  const text = `{"events":[${texts.join(',')}],${JSON.stringify(told).slice(1)}`;
  return replyRaw('application/json', text, headers);
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
  summary: 'Events of the log after an offset; may wait for the next one',
  tag: 'events',
  auth: 'public',
  query: events_query,
  returns: { 200: events_answer },
  also_produces: ['application/x-ndjson'],
  faults: read_faults,
  cacheable: true,
  longest_ms: (wait_most_s + 15) * 1_000,
  handle: listEvents,
});

/** A client that comes back names the last id it has seen, in the header or in its address. */
const placeOf = (ctx: Context<unknown, StreamQuery>): number | undefined => {
  const seen = ctx.header('last-event-id');
  return /^\d{1,15}$/.test(seen) ? Number(seen) : ctx.query.after;
};

const stream_headers = {
  'Cache-Control': 'no-store',
  // Proxies that gather answers would hold a stream back for ever.
  'X-Accel-Buffering': 'no',
  // Who comes back after a shutdown must not do so on the connection to the process that ends.
  Connection: 'close',
};

const openStream = async (
  ctx: Context<unknown, StreamQuery>,
  parts: Parts,
): Promise<Reply | Fault> => {
  const { log_watch: watch } = parts;
  const wanted = readWanted(ctx, parts);
  if (isFault(wanted)) return wanted;
  const given = placeOf(ctx);
  const gap = await findGap(watch, given);
  const visit = watch.visitors.enter(ctx);
  if (isFault(visit)) return visit;
  return replyStream(
    'text/event-stream',
    {
      produce: (signal) => {
        signal.addEventListener('abort', () => visit.endWait());
        const after = gap?.until ?? given ?? watch.head();
        return streamEvents({ watch, wanted, labels: ctx.query.topic, after, gap, signal, visit });
      },
      onEnd: visit.leave,
    },
    stream_headers,
  );
};

const stream = route({
  id: 'streamEvents',
  method: 'GET',
  path: '/api/stream',
  summary: 'The log as server-sent events: what was missed, then what happens',
  tag: 'events',
  auth: 'public',
  query: stream_query,
  returns: { 200: Type.String() },
  produces: 'text/event-stream',
  faults: read_faults,
  is_endless: true,
  handle: openStream,
});

/** A websocket does not come here; what does is told why it got none. */
const plainSocket = route({
  id: 'plainSocket',
  method: 'GET',
  path: '/ws',
  summary: 'The websocket, asked for without an upgrade',
  tag: 'events',
  auth: 'public',
  returns: {},
  faults: [log_faults.UPGRADE_REQUIRED],
  documented: false,
  allows_key_in_query: true,
  handle: () =>
    refuse(log_faults.UPGRADE_REQUIRED, {
      headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
    }),
});

export const routes = [events, stream, plainSocket];
