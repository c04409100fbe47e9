import { LRUCache } from 'lru-cache';
import type { FaultField } from '../../kit/fault.js';
import { findNarrowing } from '../events/narrowing.js';

/** Rules for the filter of a webhook, for retries, and for webhooks that keep failing. */

const known = ['url', 'events', 'filter', 'scope_question_id', 'active'];
/** Other members that clients send. They filter nothing here. */
const harmless = ['agent_id', 'type', 'kind'];
const filter_names = ['question_ids', 'categories', 'model_family', 'min_confidence'];

const message = `is not known here: use events, or filter with ${filter_names.join(', ')}`;

/** Returns unknown members of a webhook's body that look like a filter. */
export const findUnknown = (body: object): readonly FaultField[] => {
  const { filter } = body as { readonly filter?: object | null };
  const inside = Object.keys(filter ?? {})
    .filter((name) => !filter_names.includes(name))
    .map((name) => `filter.${name}`);
  const paths = [...findNarrowing(body, [...known, ...harmless]), ...inside];
  return paths.map((path) => ({ path: `body.${path}`, message }));
};

const s = 1_000;
const min = 60 * s;
const h = 60 * min;

/** Delays between a failed attempt and the next one. The first attempt is made immediately. */
export const retry_steps_ms: readonly number[] = [
  5 * s,
  5 * min,
  30 * min,
  2 * h,
  5 * h,
  10 * h,
  14 * h,
  20 * h,
  24 * h,
];

/** A delivery is abandoned after this many attempts. */
export const attempt_limit = retry_steps_ms.length + 1;

const retry_after_pattern = /^\d{1,9}$/;

/** Returns the milliseconds until the time in a Retry-After header; null if it contains no time. */
export const readRetryAfter = (text: string, now_ms: number): number | null => {
  const given = text.trim();
  if (retry_after_pattern.test(given)) return Number(given) * 1_000;
  const at = /[a-z]/i.test(given) ? Date.parse(given) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now_ms);
};

export interface Attempted {
  /** 1 for the first attempt. */
  readonly attempt: number;
  readonly status: number | null;
  /** The target breaks the rules, and will break them again next time. */
  readonly is_refused: boolean;
  readonly retry_after: string;
  readonly now_ms: number;
  /** Uniformly distributed in [0, 1). */
  readonly random: number;
}

/**
 * Returns the delay before the next attempt: the step ± 20 %. If a 429 or 503 names a time, the
 * delay is between one and two steps. The random part is then only added, so that no receiver is
 * called too early.
 */
export const retryDelay = (step_ms: number, asked_ms: number | null, random: number): number => {
  if (asked_ms === null) return Math.round(step_ms * (0.8 + 0.4 * random));
  const honoured_ms = Math.min(Math.max(asked_ms, step_ms), 2 * step_ms);
  return Math.round(Math.min(honoured_ms * (1 + 0.2 * random), 2 * step_ms));
};

export const isSuccess = (status: number | null): boolean =>
  status !== null && status >= 200 && status < 300;

interface Verdict {
  readonly state: 'delivered' | 'waiting' | 'exhausted' | 'blocked';
  readonly delay_ms: number;
}

/**
 * A 2xx status in time is a success, even if the rest of the answer fails. Any other result,
 * including a redirect, is a failure. Failures are retried, unless the target is refused.
 */
export const judgeAttempt = (made: Attempted): Verdict => {
  const { attempt, status, is_refused, now_ms, random } = made;
  if (is_refused) return { state: 'blocked', delay_ms: 0 };
  if (isSuccess(status)) {
    return { state: 'delivered', delay_ms: 0 };
  }
  const step_ms = retry_steps_ms[attempt - 1];
  if (step_ms === undefined) return { state: 'exhausted', delay_ms: 0 };
  const may_ask = status === 429 || status === 503;
  const asked_ms = may_ask ? readRetryAfter(made.retry_after, now_ms) : null;
  return { state: 'waiting', delay_ms: retryDelay(step_ms, asked_ms, random) };
};

/**
 * Circuit breakers pause webhooks that fail too often.
 *
 *   closed ─many of the last tries failed─▶ open ─time is over─▶ probing ─success─▶ closed
 *                                             ▲                     └─failure─┘ (twice as long)
 *
 * The one signer that works for an owner counts tries in memory, in windows that start with the
 * first try. Postgres stores whether a breaker is open. While a webhook is probed, Postgres hands
 * out one of its deliveries at a time.
 */

const window_ms = 5 * min;
/** If a window has fewer tries, the breaker stays closed. */
const min_tries = 10;
/** The breaker opens at this share of failures. */
const failed_share = 0.7;
const first_pause_ms = 30 * s;
const longest_pause_ms = h;

/** Returns how long the breaker stays open when it opens for the `trips`th time in a row. */
export const pauseOf = (trips: number): number =>
  Math.min(first_pause_ms * 2 ** (trips - 1), longest_pause_ms);

/** `trips`: how many times in a row the breaker has opened, or 0 if it is closed. */
type BreakerChange = { readonly trips: number; readonly pause_ms: number };

/** A try with `trips` above 0 is a probe. */
type Try = { readonly webhook_id: string; readonly trips: number; readonly is_success: boolean };

/** Returns a function that counts a try and then returns the breaker's new state if it changed. */
export const createBreakers = () => {
  const windows = new LRUCache<string, { ends_ms: number; tries: number; failed: number }>({
    max: 10_000,
  });
  const openAgain = (trips: number): BreakerChange => ({ trips, pause_ms: pauseOf(trips) });
  return ({ webhook_id, trips, is_success }: Try, now_ms: number): BreakerChange | null => {
    if (trips > 0) return is_success ? { trips: 0, pause_ms: 0 } : openAgain(trips + 1);
    let window = windows.get(webhook_id);
    if (window === undefined || window.ends_ms <= now_ms) {
      window = { ends_ms: now_ms + window_ms, tries: 0, failed: 0 };
      windows.set(webhook_id, window);
    }
    window.tries += 1;
    window.failed += is_success ? 0 : 1;
    const { tries, failed } = window;
    if (tries < min_tries || failed < failed_share * tries) return null;
    windows.delete(webhook_id);
    return openAgain(1);
  };
};
