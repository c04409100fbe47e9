import { LRUCache } from 'lru-cache';

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

const window_ms = 300_000;
/** Fewer tries within the window say nothing. */
const least_tries = 10;
/** Opens at this share of failures. */
const failed_share = 0.7;
const first_pause_ms = 30_000;
const longest_pause_ms = 3_600_000;

/** How long the breaker stays open the `trips`th time in a row. */
export const pauseOf = (trips: number): number =>
  Math.min(first_pause_ms * 2 ** (trips - 1), longest_pause_ms);

export interface Tried {
  readonly webhook_id: string;
  /** How often the breaker had opened in a row when the delivery was claimed; above 0: a probe. */
  readonly trips: number;
  readonly is_success: boolean;
}

/** What becomes of the breaker: opened so many times in a row, or closed with 0. */
export interface BreakerChange {
  readonly trips: number;
  readonly pause_ms: number;
}

/** Counts one try; says when it changes the breaker. */
export type Breakers = (tried: Tried, now_ms: number) => BreakerChange | null;

export const createBreakers = (): Breakers => {
  const windows = new LRUCache<string, { ends_ms: number; tries: number; failed: number }>({
    max: 10_000,
  });
  const openAgain = (trips: number): BreakerChange => ({ trips, pause_ms: pauseOf(trips) });
  return ({ webhook_id, trips, is_success }, now_ms) => {
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
