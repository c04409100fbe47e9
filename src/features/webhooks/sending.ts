import { setTimeout as wait } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import { createGroupCommit, type GroupCommit } from '../../db/group-commit.js';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import { isOutage } from '../../kit/outage.js';
import type { Service } from '../../kit/service.js';
import { createPlanning } from './planning.js';
import { createBreakers, judgeAttempt } from './rules.js';
import * as store from './sending-store.js';
import { isTargetRefused, type Webhooks } from './signing.js';

/**
 * Sends deliveries. Each second, and whenever something was planned or a queue ran low, this signer
 * claims the due deliveries: new ones, retries, replays, those sent again by hand, and those whose
 * signer died. Each second it also ends expired leases. Recovery needs nothing else.
 *
 *   claimed ──▶ waits for a slot ──▶ called ──▶ settled
 *                     └─ waited too long, or its webhook is paused ──▶ released
 */

/** Maximum number of concurrent calls to an endpoint, for an owner, and in total. */
export const send_limits = {
  endpoint: 2,
  owner: 8,
  total: 256,
  /** How many of `total` may be retries, replays or other repeats. */
  retries: 192,
  /** Maximum number of deliveries of one endpoint that are being called or wait for a slot. */
  depth: 32,
  /** Maximum number of deliveries that are claimed but not settled. */
  max_claimed: 4_096,
};
export type SendLimits = Readonly<typeof send_limits>;

/** Limits the concurrency for each key. Idle keys are forgotten. */
const makeLimits = (most: number) => {
  const limits = new Map<string, LimitFunction>();
  /** Returns how many calls of a key are running or waiting. */
  const countOf = (key: string): number => {
    const limit = limits.get(key);
    return limit === undefined ? 0 : limit.activeCount + limit.pendingCount;
  };
  return {
    countOf,
    counts: () => new Map([...limits.keys()].map((key) => [key, countOf(key)])),
    async run<T>(key: string, work: () => Promise<T>): Promise<T> {
      const limit = limits.get(key) ?? pLimit(most);
      limits.set(key, limit);
      try {
        return await limit(work);
      } finally {
        if (countOf(key) === 0) limits.delete(key);
      }
    },
  };
};

/**
 * A call takes one of its endpoint's slots first and one of the overall slots last. So only a few
 * calls of each endpoint wait for an overall slot.
 */
export const createSlots = (most: SendLimits) => {
  const endpoints = makeLimits(most.endpoint);
  const owners = makeLimits(most.owner);
  const retries = pLimit(most.retries);
  const total = pLimit(most.total);
  return {
    /** Returns how many calls of each webhook are running or waiting. */
    counts: endpoints.counts,
    countOf: endpoints.countOf,
    run<T>(
      {
        webhook_id,
        owner_id,
        is_repeat,
      }: Pick<store.Leased, 'webhook_id' | 'owner_id' | 'is_repeat'>,
      call: () => Promise<T>,
    ): Promise<T> {
      const inAll = () => total(call);
      const inOwner = () => owners.run(owner_id, () => (is_repeat ? retries(inAll) : inAll()));
      return endpoints.run(webhook_id, inOwner);
    },
  };
};

export interface SendingOptions {
  readonly webhooks: Webhooks;
  readonly limits?: Partial<SendLimits>;
  /** Duration of a lease. It must be well above the time limit of one call. */
  readonly lease_ms?: number;
  readonly sweep_ms?: number;
  /** The place of this process. The signer that had it before is dead. */
  readonly slot?: string | undefined;
  /** Events of this age are planned from the log, even if Redis did not announce them. */
  readonly late_ms?: number;
}

interface Job extends store.Leased {
  /** Time on this process's monotonic clock, taken before the lease started. */
  readonly claimed_ms: number;
}

/** Part of a lease that a call needs: its time limit, and the time to settle. */
const lease_margin_ms = 12_000;
const settle_again_ms = 100;

export class Sending implements Service {
  readonly name = 'signer';
  readonly stats = { delivered: 0, failed: 0, breakers_opened: 0, dead: 0 };
  readonly #deps: Deps;
  readonly #options: SendingOptions;
  readonly #limits: SendLimits;
  readonly #signer_id = makeId();
  readonly #lease_ms: number;
  readonly #slots: ReturnType<typeof createSlots>;
  readonly #settling: GroupCommit<store.Settlement, void>;
  readonly #countTry = createBreakers();
  readonly #planning: Service;
  readonly #loop: Loop;
  /** Deliveries that are claimed but not settled. */
  readonly #jobs = new Map<Job, Promise<void>>();
  /** Webhooks that may have more deliveries due. */
  readonly #unclaimed = new Set<string>();
  /** When the breaker of a webhook opened. Deliveries claimed before that time are not sent. */
  readonly #opened = new LRUCache<string, number>({ max: 10_000 });
  /** True if all webhooks are to be checked as soon as there is room. */
  #is_scan_due = true;
  #next_sweep_ms = 0;
  #is_stopping = false;

  constructor(deps: Deps, options: SendingOptions) {
    const { lease_ms = 30_000, sweep_ms = 1_000, late_ms = 5_000 } = options;
    this.#deps = deps;
    this.#options = options;
    this.#limits = { ...send_limits, ...options.limits };
    this.#lease_ms = lease_ms;
    this.#slots = createSlots(this.#limits);
    this.#settling = createGroupCommit({
      commit: async (drafts) => {
        await store.settle(deps.sql, drafts);
        return [];
      },
      most: 256,
    });
    this.#planning = createPlanning(deps, {
      signer_id: this.#signer_id,
      every_ms: sweep_ms,
      late_ms,
      onPlanned: (webhook_ids) => {
        for (const id of webhook_ids) this.#unclaimed.add(id);
        this.#loop.nudge();
      },
    });
    const turn = () => this.#turn(sweep_ms);
    this.#loop = makeLoop({ name: this.name, log: deps.log, every_ms: sweep_ms, turn });
  }

  async start(): Promise<void> {
    await store.forgetPredecessor(this.#deps.sql, this.#options.slot ?? null);
    await this.#loop.start();
    await this.#planning.start();
  }

  /** Waits for the calls in flight. All other claimed deliveries are released. */
  async stop(): Promise<void> {
    this.#is_stopping = true;
    await Promise.all([this.#planning.stop(), this.#loop.stop()]);
    await Promise.all(this.#jobs.values());
  }

  async #turn(sweep_ms: number): Promise<'rest'> {
    if (performance.now() >= this.#next_sweep_ms) {
      this.#next_sweep_ms = performance.now() + sweep_ms;
      this.#is_scan_due = true;
      await this.#sweep();
    }
    if (this.#hasRoom()) await this.#claim();
    return 'rest';
  }

  async #sweep(): Promise<void> {
    const { sql, log } = this.#deps;
    const signer_id = this.#signer_id;
    await store.showAlive(sql, signer_id, this.#options.slot ?? null);
    const lease_ids = new Set([...this.#jobs.keys()].map(({ lease_id }) => lease_id));
    const swept = await store.sweepExpired(sql, { signer_id, lease_ids: [...lease_ids] });
    if (swept.length > 0) log.warn({ count: swept.length }, 'signer: leases expired');
    for (const { id, state } of swept) {
      if (state !== 'exhausted') continue;
      this.stats.dead += 1;
      log.error({ delivery_id: id }, 'signer: a delivery was claimed five times without a result');
    }
  }

  get #room(): number {
    return this.#limits.max_claimed - this.#jobs.size;
  }

  /** A claim costs about as much for one row as for many, so it waits for enough room. */
  #hasRoom(): boolean {
    return !this.#is_stopping && this.#room >= this.#limits.max_claimed / 4;
  }

  #isHungry(webhook_id: string): boolean {
    const is_low = this.#slots.countOf(webhook_id) <= this.#limits.depth / 2;
    return is_low && this.#unclaimed.has(webhook_id);
  }

  async #claim(): Promise<void> {
    const hungry = [...this.#unclaimed].filter((id) => this.#isHungry(id));
    const webhook_ids = this.#is_scan_due ? null : hungry;
    if (webhook_ids?.length === 0) return;
    this.#is_scan_due = false;
    for (const id of webhook_ids ?? [...this.#unclaimed]) this.#unclaimed.delete(id);
    const room = this.#room;
    const claimed_ms = performance.now();
    const rows = await store.claimDue(this.#deps.sql, {
      signer_id: this.#signer_id,
      lease_id: makeId(),
      lease_ms: this.#lease_ms,
      webhook_ids,
      held: this.#slots.counts(),
      depth: this.#limits.depth,
      room,
    });
    if (rows.length >= room) this.#is_scan_due = true;
    for (const row of rows) this.#begin({ ...row, claimed_ms });
    for (const { webhook_id: id } of rows) {
      if (this.#slots.countOf(id) >= this.#limits.depth) this.#unclaimed.add(id);
    }
  }

  #begin(job: Job): void {
    const { webhook_id } = job;
    const done = this.#deliver(job)
      .catch((error: unknown) => {
        // The lease will expire, and the delivery will be sent again with the same webhook-id.
        this.#deps.log.error({ webhook_id, ...describeError(error) }, 'signer: result not stored');
      })
      .then(() => {
        this.#jobs.delete(job);
        if (job.is_ordered) this.#unclaimed.add(webhook_id);
        if (this.#isHungry(webhook_id) || (this.#is_scan_due && this.#hasRoom())) {
          this.#loop.nudge();
        }
      });
    this.#jobs.set(job, done);
  }

  async #deliver(job: Job): Promise<void> {
    const settlement = await this.#slots.run(job, () => this.#call(job));
    const is_opened = (settlement.breaker?.trips ?? 0) > 0;
    try {
      await this.#settle(settlement);
    } finally {
      if (is_opened) this.#opened.set(job.webhook_id, performance.now());
    }
  }

  async #settle(settlement: store.Settlement): Promise<void> {
    const until_ms = performance.now() + this.#lease_ms;
    for (;;) {
      try {
        return await this.#settling.add(settlement);
      } catch (error) {
        if (!isOutage(error) || performance.now() >= until_ms) throw error;
        await wait(settle_again_ms);
      }
    }
  }

  #isFresh({ webhook_id, trips, claimed_ms }: Job): boolean {
    const margin_ms = Math.min(lease_margin_ms, this.#lease_ms * 0.4);
    const is_paused = trips === 0 && claimed_ms <= (this.#opened.get(webhook_id) ?? -1);
    const left_ms = claimed_ms + this.#lease_ms - performance.now();
    return !this.#is_stopping && !is_paused && left_ms >= margin_ms;
  }

  async #call(job: Job): Promise<store.Settlement> {
    const { log, clock } = this.#deps;
    const { webhook_id, event_id, lease_id, trips, attempt, event, body } = job;
    const named = { webhook_id, event_id, lease_id, delay_ms: 0, attempt: null } as const;
    if (event === null || body === null) return { ...named, state: 'expired' };
    if (!this.#isFresh(job)) return { ...named, state: 'released' };
    const sent = { ...job, event, body };
    const outcome = await this.#options.webhooks.send(sent, clock().getTime());
    if (outcome.stood_still) return { ...named, state: 'released' };
    if (outcome.error === 'secret_unreadable') {
      log.error({ webhook_id }, 'signer: cannot decrypt a webhook secret with SECRET_KEY');
    }
    const { status, error, retry_after, latency_ms, answer } = outcome;
    const verdict = judgeAttempt({
      attempt,
      status,
      retry_after,
      is_refused: isTargetRefused(error),
      now_ms: clock().getTime(),
      random: Math.random(),
    });
    const is_success = verdict.state === 'delivered';
    this.stats[is_success ? 'delivered' : 'failed'] += 1;
    const breaker = this.#countTry({ webhook_id, trips, is_success }, performance.now());
    if (breaker !== null && breaker.trips > 0) {
      // Deliveries that are claimed before the pause is stored in Postgres are not sent either.
      this.#opened.set(webhook_id, Number.POSITIVE_INFINITY);
      this.stats.breakers_opened += 1;
      log.warn({ webhook_id, ...breaker }, 'signer: a webhook fails and is paused');
    }
    return { ...named, ...verdict, attempt, latency_ms, status, error, answer, breaker };
  }
}
