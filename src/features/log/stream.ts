import type { LogEntry } from '../events/index.js';
import type { Gap } from './schema.js';
import type { LogWatch, Visit, Wanted } from './watch.js';

/**
 * A stream of server-sent events: what was missed, then what happens, in order, without a hole and
 * without a repeat. It is made at the pace of its reader and stands at an offset at any time, so
 * nothing is queued for anybody: a slow reader is further back in the log, and one that stands
 * still is cut and resumes from the last id it has seen.
 */

/** How often a quiet stream says that it is alive, ± 10 %. */
const tick_ms = 15_000;
/** ± 20 %. */
const lifetime_ms = 4 * 3_600_000;
/** Reconnections after a shutdown are spread over this. */
const spread_ms = 5_000;
const page_size = 100;
const retry_ms = 1_000;

export interface StreamAsk {
  readonly watch: LogWatch;
  readonly wanted: Wanted;
  /** What the client calls its topics. */
  readonly labels: readonly string[];
  readonly after: number;
  readonly gap: Gap | null;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  readonly visit: Visit;
}

/** An event as it is written: the bytes of the record, with offset and id before them. */
export const eventText = ({ offset, id, body }: LogEntry): string =>
  `{"offset":${offset},"id":"${id}",${body.slice(1)}`;

/** An event of the log has no name, so that a listener for messages gets all of them. */
const logEvent = (entry: LogEntry): string => `id: ${entry.offset}\ndata: ${eventText(entry)}\n\n`;

/** JSON has no line breaks, so its data is one line. */
const namedEvent = (name: string, data: object, fields = ''): string =>
  `${fields}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

const around = (ms: number, share: number): number => ms * (1 - share + 2 * share * Math.random());

const welcome = ({ watch, labels, after, gap }: StreamAsk): string => {
  const place = { topics: labels, after, head: watch.head(), oldest: watch.oldest() };
  const data = { ...place, tick_ms, time: new Date().toISOString() };
  const said = namedEvent('welcome', data, `retry: ${retry_ms}\n`);
  return gap === null ? said : said + namedEvent('gap', gap);
};

const tick = (head: number): string =>
  namedEvent('tick', { head, time: new Date().toISOString() }, `id: ${head}\n`);

const bye = (reason: string): string => {
  const reconnect_ms = reason === 'draining' ? Math.round(spread_ms * Math.random()) : retry_ms;
  return namedEvent('bye', { reason, reconnect_ms }, `retry: ${reconnect_ms}\n`);
};

export async function* streamEvents(ask: StreamAsk): AsyncGenerator<string> {
  const { watch, wanted, signal, visit } = ask;
  const hasEnded = (): boolean => visit.revoked !== null || watch.hasEnded();
  const ends_ms = performance.now() + around(lifetime_ms, 0.2);
  let cursor = ask.after;
  yield welcome(ask);
  while (!signal.aborted) {
    if (hasEnded() || performance.now() > ends_ms) {
      const why = watch.hasEnded() ? 'draining' : 'lifetime';
      yield bye(visit.revoked === null ? why : 'credential');
      return;
    }
    const { entries, next } = await watch.read(wanted, cursor, page_size);
    cursor = next;
    if (entries.length > 0) yield entries.map(logEvent).join('');
    if (cursor < watch.head() || hasEnded()) continue;
    const left_ms = Math.max(0, ends_ms - performance.now());
    const waiting = watch.awaitNext(wanted, Math.min(around(tick_ms, 0.1), left_ms));
    visit.endWait = waiting.end;
    const { woken, up_to } = await waiting.wait;
    cursor = Math.max(cursor, up_to);
    if (woken === 'late') yield tick(cursor);
  }
}
