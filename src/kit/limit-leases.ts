import type { Redis } from 'ioredis';
import type { Window } from './limits.js';
import { loadScript } from './redis/scripts.js';

/**
 * Limits of callers who ask very often, without a round trip for each call. Who makes several calls
 * within `span_ms` is lent some ahead of time by Redis, which counts them from the end of the span
 * on, so that no sliding window ever holds more than its limit; what is not used is given back. At
 * most a quarter of what is left is lent, so near the limit every call is asked for alone:
 *
 *   alone ──`busy_calls` in a span──▶ asking ──▶ lent ──little left, or old──▶ asking, lent still
 *     ▲                                 │         │
 *     └────────── none was lent ────────┘         └── not asked for: the rest is given back
 */

const script = loadScript('lease-1.lua');

const span_ms = 50;
const busy_calls = 8;
const most_lent = 8_000;
/** More callers than this are not remembered: all begin alone again. */
const most_callers = 10_000;

interface Lot {
  left: number;
  /** Under which Redis counts it. */
  readonly stamp: number;
  /** By the clock of this process. */
  readonly end_ms: number;
}

/** What one caller was lent. */
export class Lease {
  readonly window: Window;
  lots: Lot[] = [];
  is_asking = false;
  /** Calls since `since_ms`, lent or not. */
  calls = 0;
  since_ms = 0;
  /** Calls left besides what was lent, and when the oldest one counted grows old. */
  besides = 0;
  reset_ms = 0;
  /** What was lent last. */
  size = 0;

  readonly #head: string;
  #seconds = -1;
  #tail = '';

  constructor(window: Window) {
    this.window = window;
    const { name, limit, window_ms } = window;
    const policy = `"${name}";q=${limit};w=${Math.round(window_ms / 1_000)}`;
    this.#head = `\r\nRateLimit-Policy: ${policy}\r\nRateLimit: "${name}";r=`;
  }

  /** The header lines of the limit, to follow another one. */
  shown(now_ms: number): string {
    let left = this.besides;
    for (const lot of this.lots) left += lot.left;
    const seconds = Math.max(0, Math.ceil((this.reset_ms - now_ms) / 1_000));
    if (seconds !== this.#seconds) {
      this.#seconds = seconds;
      this.#tail = `;t=${seconds}`;
    }
    return this.#head + left + this.#tail;
  }
}

export interface Leases {
  /** What this key was lent; made by `open` where it is not there. */
  get(key: string): Lease | undefined;
  open(key: string, window: Window): Lease;
  /** Takes one call that was lent; false when the call has to be asked for. */
  take(lease: Lease, now_ms: number): boolean;
  /**
   * For a call that is not counted: whether something is lent now, for then what is shown is right.
   * Who asks for such often is lent some too, and it all goes back.
   */
  isLent(lease: Lease, now_ms: number): boolean;
  stop(): void;
}

export interface LeaseOptions {
  readonly redis: Redis;
  readonly prefix: string;
}

/** Asks Redis for calls, and gives back what was not used; stamps and ends are as they must be. */
const makeLender = ({ redis, prefix }: LeaseOptions) => {
  const timers = new Set<NodeJS.Timeout>();
  let stopped = false;

  const run = async (lease: Lease, wanted: number, back: Lot | undefined): Promise<Lot | null> => {
    const { key, limit, window_ms } = lease.window;
    const given_back = [back?.left ?? 0, back?.stamp ?? 0];
    if (back !== undefined) back.left = 0;
    const began_ms = performance.now();
    const args = [limit, window_ms, wanted, span_ms, ...given_back];
    const text = (await script(redis, [`${prefix}:{limits}:${key}`], args)) as string;
    const [lent = 0, stamp = 0, besides = 0, reset_ms = 0] = text.split(',').map(Number);
    lease.besides = besides;
    lease.reset_ms = began_ms + Math.min(reset_ms, window_ms);
    // Its end counts from before the question: what is used is used before it counts.
    return lent === 0 ? null : { left: lent, stamp, end_ms: began_ms + span_ms };
  };

  /** What is left of lots that have ended goes back. */
  const giveBackLater = (lease: Lease): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      const now_ms = performance.now();
      const ended = lease.lots.filter((lot) => lot.end_ms <= now_ms);
      lease.lots = lease.lots.filter((lot) => lot.end_ms > now_ms);
      for (const lot of ended) {
        if (lot.left > 0 && !stopped) run(lease, 0, lot).catch(() => undefined);
      }
    }, span_ms + 10);
    timer.unref();
    timers.add(timer);
  };

  return {
    ask(lease: Lease, wanted: number): void {
      if (lease.is_asking || stopped || redis.status !== 'ready') return;
      lease.is_asking = true;
      run(lease, wanted, undefined)
        .then((lot) => {
          if (lot === null) return;
          lease.size = lot.left;
          lease.lots.push(lot);
          giveBackLater(lease);
        })
        .catch(() => undefined)
        .finally(() => {
          lease.is_asking = false;
        });
    },
    stop(): void {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
};

export const createLeases = (options: LeaseOptions): Leases => {
  const leases = new Map<string, Lease>();
  const lender = makeLender(options);

  /** Counts the call, and asks for more where there is little left for who asks often. */
  const count = (lease: Lease, now_ms: number): void => {
    if (now_ms - lease.since_ms > span_ms) {
      lease.calls = 0;
      lease.since_ms = now_ms;
    }
    lease.calls += 1;
    if (lease.calls < busy_calls || lease.is_asking) return;
    const last = lease.lots[lease.lots.length - 1];
    const is_short = last === undefined || last.left < lease.size / 2;
    if (!is_short && last.end_ms - now_ms >= span_ms / 2) return;
    const a_span = (lease.calls * span_ms) / Math.max(1, now_ms - lease.since_ms);
    lender.ask(lease, Math.min(most_lent, Math.ceil(a_span * 1.5) + busy_calls));
  };

  return {
    get: (key) => leases.get(key),
    open(key, window) {
      if (leases.size >= most_callers) leases.clear();
      const lease = new Lease(window);
      leases.set(key, lease);
      return lease;
    },
    take(lease, now_ms) {
      count(lease, now_ms);
      for (const lot of lease.lots) {
        if (lot.left === 0 || lot.end_ms <= now_ms) continue;
        lot.left -= 1;
        return true;
      }
      return false;
    },
    isLent(lease, now_ms) {
      count(lease, now_ms);
      return lease.lots.some((lot) => lot.end_ms > now_ms);
    },
    stop() {
      lender.stop();
      leases.clear();
    },
  };
};
