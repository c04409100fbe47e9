import { LRUCache } from 'lru-cache';
import type { FaultField } from '../../kit/fault.js';
import { findNarrowing } from '../events/narrowing.js';

/** What narrows a webhook, when to try again, and when a webhook is left alone. */

const known = ['url', 'events', 'filter', 'scope_question_id', 'active'];
/** What clients send beside, and what narrows nothing here. */
const harmless = ['agent_id', 'type', 'kind'];
const filter_names = ['question_ids', 'categories', 'model_family', 'min_confidence'];

const message = `is not known here: narrow by events, or by filter with ${filter_names.join(', ')}`;

/** Members of a webhook's body that would have narrowed what is delivered, and that are not known. */
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

/** How long after a failed attempt the next one follows; the first goes out at once. */
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

/** A delivery is given up after this many attempts. */
export const attempt_limit = retry_steps_ms.length + 1;

const retry_after_pattern = /^\d{1,9}$/;

/** Milliseconds until the time of a Retry-After header; null when it names none. */
export const readRetryAfter = (text: string, now_ms: number): number | null => {
  const given = text.trim();
  if (retry_after_pattern.test(given)) return Number(given) * 1_000;
  const at = /[a-z]/i.test(given) ? Date.parse(given) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now_ms);
};

export interface Attempted {
  /** 1 for the first. */
  readonly attempt: number;
  readonly status: number | null;
  /** The target is against the rules, and so it will be the next time. */
  readonly is_refused: boolean;
  readonly retry_after: string;
  readonly now_ms: number;
  /** Evenly from [0, 1). */
  readonly random: number;
}

/**
 * Delay before the next attempt: the step ± 20 %. The time that a 429 or 503 names is honoured
 * between one and two steps, and then the spread only adds, so that no receiver is called before
 * the time that it named.
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
 * A status of 2xx in time is success, whatever becomes of the rest of the answer; everything else,
 * redirects too, is a failure that is tried again.
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
 * Which webhooks fail so often that they are left alone for a while.
 *
 *   closed ─many of the last tries failed─▶ open ─time is over─▶ probing ─success─▶ closed
 *                                             ▲                     └─failure─┘ (twice as long)
 *
 * The tries are counted here, by the one signer that works for an owner, from the first of them on
 * for as long as a window lasts. Whether a breaker is open is in Postgres, which hands out one
 * delivery at a time of a webhook that is probed.
 */

const window_ms = 5 * min;
/** Fewer tries within the window say nothing. */
const least_tries = 10;
/** Opens at this share of failures. */
const failed_share = 0.7;
const first_pause_ms = 30 * s;
const longest_pause_ms = h;

/** How long the breaker stays open the `trips`th time in a row. */
export const pauseOf = (trips: number): number =>
  Math.min(first_pause_ms * 2 ** (trips - 1), longest_pause_ms);

/** The new state of the breaker: opened so many times in a row, or closed with 0. */
type BreakerChange = { readonly trips: number; readonly pause_ms: number };

/** A try of `trips` above 0 is a probe. */
type Try = { readonly webhook_id: string; readonly trips: number; readonly is_success: boolean };

/** Counts one try; says when it changes the breaker. */
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
    if (tries < least_tries || failed < failed_share * tries) return null;
    windows.delete(webhook_id);
    return openAgain(1);
  };
};
