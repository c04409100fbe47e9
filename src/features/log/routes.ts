import { Type } from '@sinclair/typebox';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import type { Context } from '../../kit/http/route.js';
import { type Reply, replyRaw, replyStream, routeFor } from '../../kit/http/route.js';
import { sha256 } from '../../kit/ids.js';
import { pageHeaders, refuseCursor } from '../../kit/page.js';
import { type TopicRef, ws_faults } from '../../kit/ws/frames.js';
import { readFilter, resolveTopic } from '../events/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import type { LogDoors, LogParts } from './doors.js';
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
import { streamEvents } from './stream.js';
import { eventText } from './texts.js';
import type { LogPage, LogWatch, Wanted } from './watch.js';

/** The event log over HTTP: pages, long-polls and a stream, over the cursor of the websocket. */

type Parts = LogParts & TaxonomyParts;

const route = routeFor<Parts>();

type Ask = Pick<Context<unknown, StreamQuery>, 'query' | 'caller'>;

/** The topics and the filter, as far as this caller may have them. */
const readWanted = ({ query, caller }: Ask, { taxonomy }: TaxonomyParts): Wanted | Fault => {
  const pillars = taxonomy.latest();
  const { topic, events, question_ids, categories, model_family, min_confidence } = query;
  const given = {
    ...(events && { events }),
    ...(question_ids && { question_ids }),
    ...(categories && { categories }),
    ...(model_family && { model_family }),
    ...(min_confidence !== undefined && { min_confidence }),
  };
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

const credentialOf = (ctx: Pick<Context<unknown, unknown>, 'caller' | 'header'>): string | null =>
  ctx.caller.kind === 'agent' ? sha256(ctx.header('x-api-key'), 'hex') : null;

/** Private events are for the eyes of one caller, and for no cache. */
const isPrivate = ({ refs }: Wanted): boolean => refs.some(({ label }) => label === 'me');

/** Where to begin, and what to say when that is not right behind `after`. */
const findGap = async (watch: LogWatch, after: number | undefined): Promise<Gap | Fault | null> => {
  if (after === undefined) return null;
  const reached = await watch.hasReached(after);
  if (reached === 'never') return { reason: 'epoch', after, until: watch.head() };
  // To go on from an earlier offset would be to repeat what the client has.
  if (reached === 'late') {
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
  }
  const until = watch.oldest() - 1;
  return after < until ? { reason: 'expired', after, until } : null;
};

const readAfter = (text: string): number | Fault =>
  /^\d{1,15}$/.test(text) ? Number(text) : refuseCursor();

/** Pages until one has something, as far as one call may look. */
const most_reads = 5;

const readSome = async (
  watch: LogWatch,
  wanted: Wanted,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<LogPage> => {
  let page = await watch.read(wanted, after, limit);
  for (let reads = 1; reads < most_reads; reads += 1) {
    if (page.entries.length > 0 || page.next >= watch.head()) break;
    page = await watch.read(wanted, page.next, limit);
  }
  return page;
};

type EventsContext = Context<unknown, EventsQuery>;

/** Waits for something wanted; what there is then, or why the caller may no longer have it. */
const awaitPage = async (
  ctx: EventsContext,
  { watch, visitors }: LogDoors,
  wanted: Wanted,
  page: LogPage,
): Promise<LogPage | Fault> => {
  const { caller, ip, query } = ctx;
  const waiting = watch.awaitNext(wanted, query.wait * 1_000);
  let revoked: Fault | null = null;
  const onRevoked = (fault: Fault): void => {
    revoked = fault;
    waiting.end();
  };
  const leave = visitors.enter({ caller, ip, credential: credentialOf(ctx), onRevoked });
  if (isFault(leave)) {
    waiting.end();
    return leave;
  }
  ctx.onGone(waiting.end);
  const { woken, up_to } = await waiting.wait;
  leave();
  if (revoked !== null) return revoked;
  const after = Math.max(page.next, up_to);
  return woken === 'event' ? watch.read(wanted, after, query.limit) : { entries: [], next: after };
};

const wantsLines = (ctx: EventsContext): boolean =>
  ctx.query.format === 'ndjson' ||
  (ctx.query.format === undefined && ctx.header('accept').includes('application/x-ndjson'));

/** What a page says beside its events. */
interface Told {
  readonly gap: Gap | null;
  readonly next: number;
  readonly next_cursor: string | null;
  readonly head: number;
  readonly oldest: number;
}

/** Text, because an event is the bytes of the record, whatever is written around it. */
const writeJson = ({ entries }: LogPage, told: Told): string =>
  `{"events":[${entries.map(eventText).join(',')}],${JSON.stringify(told).slice(1)}`;

const writeLines = ({ entries }: LogPage, { gap }: Told): string => {
  const lines = entries.map(eventText);
  if (gap !== null) lines.unshift(JSON.stringify({ gap }));
  return lines.map((line) => `${line}\n`).join('');
};

const headersOf = (query: EventsQuery, wanted: Wanted, told: Told): Record<string, string> => {
  const { cursor: _cursor, after: _after, wait: _wait, ...kept } = query;
  return {
    ...pageHeaders('/api/events', kept, told.next_cursor),
    'X-Log-Next': String(told.next),
    'X-Log-Head': String(told.head),
    'X-Log-Oldest': String(told.oldest),
    Vary: 'Accept',
    ...(isPrivate(wanted) ? { 'Cache-Control': 'no-store' } : {}),
  };
};

const listEvents = async (ctx: EventsContext, parts: Parts): Promise<Reply | Fault> => {
  const { log_doors: doors } = parts;
  const { watch } = doors;
  const { query } = ctx;
  const wanted = readWanted(ctx, parts);
  if (isFault(wanted)) return wanted;
  const given = query.cursor === undefined ? query.after : readAfter(query.cursor);
  if (isFault(given)) return given;
  const gap = await findGap(watch, given);
  if (isFault(gap)) return gap;
  const after = gap?.until ?? given ?? Math.max(0, watch.oldest() - 1);
  let page: LogPage | Fault = await readSome(watch, wanted, { after, limit: query.limit });
  if (query.wait > 0 && page.entries.length === 0 && gap === null && page.next >= watch.head()) {
    page = await awaitPage(ctx, doors, wanted, page);
    if (isFault(page)) return page;
  }
  const { next } = page;
  const head = watch.head();
  const next_cursor = next < head ? String(next) : null;
  const told = { gap, next, next_cursor, head, oldest: watch.oldest() };
  const headers = headersOf(query, wanted, told);
  return wantsLines(ctx)
    ? replyRaw('application/x-ndjson', writeLines(page, told), headers)
    : replyRaw('application/json', writeJson(page, told), headers);
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
  const { log_doors: doors } = parts;
  const { watch, visitors, limits } = doors;
  const wanted = readWanted(ctx, parts);
  if (isFault(wanted)) return wanted;
  const given = placeOf(ctx);
  const gap = await findGap(watch, given);
  if (isFault(gap)) return gap;
  let revoked = false;
  let endWait = (): void => undefined;
  const leave = visitors.enter({
    caller: ctx.caller,
    ip: ctx.ip,
    credential: credentialOf(ctx),
    onRevoked: () => {
      revoked = true;
      endWait();
    },
  });
  if (isFault(leave)) return leave;
  const endsBecause = () => (revoked ? 'credential' : doors.isDraining() ? 'draining' : null);
  const onWait = (end: () => void): void => {
    endWait = end;
  };
  return replyStream(
    'text/event-stream',
    {
      produce: (signal) => {
        signal.addEventListener('abort', () => endWait());
        const after = gap?.until ?? given ?? watch.head();
        const ask = { watch, wanted, labels: ctx.query.topic, after, gap, limits, signal };
        return streamEvents({ ...ask, endsBecause, onWait });
      },
      onEnd: leave,
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
