import type { LogEntry } from '../events/index.js';
import type { Gap } from './schema.js';
import { sseEvent, sseText } from './texts.js';
import type { LogWatch, Wanted } from './watch.js';

/**
 * A stream of server-sent events: what was missed, then what happens, in order, without a hole and
 * without a repeat. It is made at the pace of its reader and stands at an offset at any time, so
 * nothing is queued for anybody: a slow reader is further back in the log, and one that stands
 * still is cut and resumes from the last id it has seen.
 */

export interface StreamLimits {
  /** How often a quiet stream says that it is alive, ± 10 %. */
  readonly tick_ms: number;
  /** ± 20 %. */
  readonly lifetime_ms: number;
  /** Reconnections after a shutdown are spread over this. */
  readonly spread_ms: number;
}

export const stream_limits: StreamLimits = {
  tick_ms: 15_000,
  lifetime_ms: 4 * 3_600_000,
  spread_ms: 5_000,
};

export interface StreamAsk {
  readonly watch: LogWatch;
  readonly wanted: Wanted;
  /** What the client calls its topics. */
  readonly labels: readonly string[];
  readonly after: number;
  readonly gap: Gap | null;
  readonly limits: StreamLimits;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  /** Why it has to end, when it has to. */
  readonly endsBecause: () => 'credential' | 'draining' | null;
  /** Gets a way to end the wait under way. */
  readonly onWait: (end: () => void) => void;
}

const page_size = 100;
const retry_ms = 1_000;

const around = (ms: number, share: number): number => ms * (1 - share + 2 * share * Math.random());

const welcome = ({ watch, labels, after, limits }: StreamAsk): string =>
  sseText(
    'welcome',
    JSON.stringify({
      topics: labels,
      after,
      head: watch.head(),
      oldest: watch.oldest(),
      tick_ms: limits.tick_ms,
      time: new Date().toISOString(),
    }),
    { retry_ms },
  );

const tick = (head: number): string =>
  sseText('tick', JSON.stringify({ head, time: new Date().toISOString() }), { id: head });

const bye = (reason: string, limits: StreamLimits): string => {
  const ms = reason === 'draining' ? Math.round(limits.spread_ms * Math.random()) : retry_ms;
  return sseText('bye', JSON.stringify({ reason, reconnect_ms: ms }), { retry_ms: ms });
};

const textOf = (entries: readonly LogEntry[]): string => entries.map(sseEvent).join('');

export async function* streamEvents(ask: StreamAsk): AsyncGenerator<string> {
  const { watch, wanted, limits, signal, gap } = ask;
  const ends_ms = performance.now() + around(limits.lifetime_ms, 0.2);
  let cursor = ask.after;
  yield welcome(ask) + (gap === null ? '' : sseText('gap', JSON.stringify(gap)));
  while (!signal.aborted) {
    const reason = ask.endsBecause() ?? (performance.now() > ends_ms ? 'lifetime' : null);
    if (reason !== null) {
      yield bye(reason, limits);
      return;
    }
    const { entries, next } = await watch.read(wanted, cursor, page_size);
    cursor = next;
    if (entries.length > 0) yield textOf(entries);
    if (cursor < watch.head() || ask.endsBecause() !== null) continue;
    const left_ms = Math.max(0, ends_ms - performance.now());
    const waiting = watch.awaitNext(wanted, Math.min(around(limits.tick_ms, 0.1), left_ms));
    ask.onWait(waiting.end);
    const { woken, up_to } = await waiting.wait;
    cursor = Math.max(cursor, up_to);
    if (woken === 'late') yield tick(cursor);
  }
}
