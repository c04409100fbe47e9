import { LRUCache } from 'lru-cache';

/**
 * Which webhooks fail so often that they are left alone for a while.
 *
 *   closed ─many of the last tries failed─▶ open ─time is over─▶ probing ─success─▶ closed
 *                                             ▲                     └─failure─┘ (twice as long)
 *
 * The tries are counted here, by the one signer that works for an owner; whether a breaker is open
 * stands in Postgres, which hands out one delivery at a time to a webhook that is probed.
 */

export interface BreakerRules {
  readonly window_ms: number;
  /** Fewer tries within the window say nothing. */
  readonly least_tries: number;
  /** Opens at this share of failures. */
  readonly failed_share: number;
  readonly first_pause_ms: number;
  readonly longest_pause_ms: number;
}

export const breaker_rules: BreakerRules = {
  window_ms: 300_000,
  least_tries: 10,
  failed_share: 0.7,
  first_pause_ms: 30_000,
  longest_pause_ms: 3_600_000,
};

/** How long the breaker stays open the `trips`th time in a row. */
export const pauseOf = (trips: number, rules: BreakerRules = breaker_rules): number =>
  Math.min(rules.first_pause_ms * 2 ** (trips - 1), rules.longest_pause_ms);

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

export interface Breakers {
  /** Counts one try; says when it changes the breaker. */
  note(tried: Tried, now_ms: number): BreakerChange | null;
}

/** The window moves in so many steps. */
const slots = 20;
/** More webhooks than this are not remembered. */
const most_webhooks = 10_000;

interface Slot {
  readonly at: number;
  tries: number;
  failed: number;
}

export const createBreakers = (rules: BreakerRules = breaker_rules): Breakers => {
  const slot_ms = rules.window_ms / slots;
  const windows = new LRUCache<string, Slot[]>({ max: most_webhooks });

  const dropOld = (window: Slot[], now_ms: number): Slot[] => {
    const oldest = Math.floor(now_ms / slot_ms) - slots;
    while (window[0] !== undefined && window[0].at <= oldest) window.shift();
    return window;
  };
  const count = (webhook_id: string, is_success: boolean, now_ms: number): readonly Slot[] => {
    const window = dropOld(windows.get(webhook_id) ?? [], now_ms);
    windows.set(webhook_id, window);
    const at = Math.floor(now_ms / slot_ms);
    let slot = window.at(-1);
    if (slot?.at !== at) {
      slot = { at, tries: 0, failed: 0 };
      window.push(slot);
    }
    slot.tries += 1;
    slot.failed += is_success ? 0 : 1;
    return window;
  };
  const openAgain = (trips: number): BreakerChange => ({ trips, pause_ms: pauseOf(trips, rules) });

  const note = ({ webhook_id, trips, is_success }: Tried, now_ms: number): BreakerChange | null => {
    if (trips > 0) {
      windows.delete(webhook_id);
      return is_success ? { trips: 0, pause_ms: 0 } : openAgain(trips + 1);
    }
    const window = count(webhook_id, is_success, now_ms);
    const tries = window.reduce((sum, slot) => sum + slot.tries, 0);
    const failed = window.reduce((sum, slot) => sum + slot.failed, 0);
    if (tries < rules.least_tries || failed < rules.failed_share * tries) return null;
    windows.delete(webhook_id);
    return openAgain(1);
  };

  return { note };
};
