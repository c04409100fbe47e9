import { LRUCache } from 'lru-cache';
import type { Deps } from '../../../kit/deps.js';
import { makeId } from '../../../kit/ids.js';
import { describeError } from '../../../kit/log.js';
import { type Loop, makeLoop } from '../../../kit/loop.js';
import type { Service } from '../../../kit/service.js';
import { isTargetRefused, type LetterOutcome, type Webhooks } from '../parts.js';
import { judgeAttempt } from '../rules.js';
import { type BreakerChange, type BreakerRules, breaker_rules, createBreakers } from './breaker.js';
import { Dispatcher, type DispatchLimits, dispatch_limits } from './dispatcher.js';
import { createPlanning } from './planning.js';
import { createSettling, type Settling } from './settling.js';
import {
  claimDue,
  type LeaseAsk,
  type Leased,
  release,
  releaseLeases,
  type Settlement,
  setBreaker,
  showAlive,
  sweepExpired,
} from './store.js';

/**
 * The sending of deliveries. What this signer plans is leased to it and sent at once; each second,
 * and where a queue ran low, it claims what else is due: retries, deliveries that are sent again,
 * replays, and those whose signer died. Each second also ends leases that ran out, and that is the
 * whole recovery story.
 */

export interface SendingOptions {
  readonly webhooks: Webhooks;
  readonly limits?: Partial<DispatchLimits>;
  /** How long a lease holds; well above the wall clock of one call. */
  readonly lease_ms?: number;
  readonly sweep_ms?: number;
  /** Events of this age are planned whatever Redis says. */
  readonly late_ms?: number;
  readonly breaker?: Partial<BreakerRules>;
  /** A webhook is to be switched off. */
  readonly onSick?: () => void;
}

interface Job extends Leased {
  /** On this process's monotonic clock, before its lease began. */
  readonly asked_ms: number;
}

/** Smaller than any id. */
const first_id = '00000000-0000-0000-0000-000000000000';
/** Settlements that wait for Postgres; above this nothing is leased. */
const most_unsettled = 2_000;
/** What must be left of a lease to begin a call: its wall clock and time to settle. */
const lease_margin_ms = 12_000;
/** A signer that did not say for so long that it lives leases nothing: others may take it away. */
const silent_ms = 3_000;

export class Sending implements Service {
  readonly name = 'signer';
  readonly stats = { delivered: 0, failed: 0, breakers_opened: 0, dead: 0 };
  readonly #deps: Deps;
  readonly #webhooks: Webhooks;
  readonly #signer_id = makeId();
  readonly #lease_ms: number;
  readonly #sweep_ms: number;
  readonly #settling: Settling;
  readonly #breakers: ReturnType<typeof createBreakers>;
  /** When the breaker of a webhook was opened; nothing leased before is sent. */
  readonly #opened = new LRUCache<string, number>({ max: 10_000 });
  readonly #dispatcher: Dispatcher<Job>;
  readonly #planning: Service;
  readonly #loop: Loop;
  /** All webhooks are to be looked at, as soon as there is room. */
  #scan_due = true;
  /** Scans that were cut go on after this webhook, so that nobody is always the last. */
  #scanned_up_to = first_id;
  #next_sweep_ms = 0;
  #alive_ms = Number.NEGATIVE_INFINITY;
  #is_stopping = false;
  /** Leases of transactions that failed, and until when they may still have been carried out. */
  readonly #failed_leases = new Map<string, number>();
  readonly #opening = new Set<Promise<void>>();
  #given_back: Promise<void> = Promise.resolve();

  constructor(deps: Deps, options: SendingOptions) {
    const { webhooks, lease_ms = 30_000, sweep_ms = 1_000, late_ms = 5_000 } = options;
    const { onSick = () => undefined } = options;
    this.#deps = deps;
    this.#webhooks = webhooks;
    this.#lease_ms = lease_ms;
    this.#sweep_ms = sweep_ms;
    this.#breakers = createBreakers({ ...breaker_rules, ...options.breaker });
    this.#settling = createSettling(deps, { lease_ms, onSick });
    this.#planning = createPlanning(deps, {
      signer_id: this.#signer_id,
      ask: () => this.#ask(this.#dispatcher.rooms()),
      take: (ask, planned) => this.#takePlanned(ask, planned),
      failed: (ask) => this.#noteFailed(ask),
      every_ms: sweep_ms,
      late_ms,
    });
    const turn = () => this.#turn();
    this.#loop = makeLoop({ name: this.name, log: deps.log, every_ms: sweep_ms, turn });
    this.#dispatcher = new Dispatcher<Job>({
      limits: { ...dispatch_limits, ...options.limits },
      send: async (job) => {
        await this.#send(job);
        if (this.#scan_due) this.#loop.nudge();
      },
      isFresh: (job) => this.#isFresh(job),
      giveBack: (job) => this.#giveBack([job]),
      onHungry: () => this.#loop.nudge(),
    });
  }

  async start(): Promise<void> {
    await this.#loop.start();
    await this.#planning.start();
  }

  /** Waits for the calls in flight; what was leased beyond them is given back. */
  async stop(): Promise<void> {
    this.#is_stopping = true;
    await Promise.all([this.#planning.stop(), this.#loop.stop()]);
    this.#giveBack(this.#dispatcher.takeAll());
    await this.#dispatcher.idle();
    await Promise.all([this.#given_back, ...this.#opening]);
    await this.#settling.drain();
  }

  async #turn(): Promise<'again' | 'rest'> {
    await this.#sweepIfDue();
    const is_scan = this.#scan_due;
    const rooms = is_scan ? this.#dispatcher.rooms() : this.#dispatcher.hungryRooms();
    const ask = this.#ask(rooms);
    // A claim costs about as much for one row as for many.
    const is_full = ask.room < this.#dispatcher.most / 4;
    if (is_full || (!is_scan && rooms.size === 0)) return 'rest';
    this.#scan_due = false;
    const rows = await this.#claim(ask, is_scan ? this.#scanned_up_to : null);
    const is_cut = rows.length >= ask.room;
    if (is_scan) this.#scanned_up_to = is_cut ? lastId(rows) : first_id;
    this.#scan_due ||= is_cut;
    return this.#scan_due || this.#dispatcher.hungryRooms().size > 0 ? 'again' : 'rest';
  }

  async #sweepIfDue(): Promise<void> {
    const { sql, log } = this.#deps;
    const now_ms = performance.now();
    if (now_ms < this.#next_sweep_ms) return;
    this.#next_sweep_ms = now_ms + this.#sweep_ms;
    this.#scan_due = true;
    await showAlive(sql, this.#signer_id);
    this.#alive_ms = now_ms;
    await this.#releaseFailed(now_ms);
    const swept = await sweepExpired(sql);
    if (swept.length > 0) log.warn({ count: swept.length }, 'signer: leases ran out');
    for (const { id, state } of swept) {
      if (state !== 'exhausted') continue;
      this.stats.dead += 1;
      log.error({ delivery_id: id }, 'signer: a delivery was claimed five times without a result');
    }
  }

  /** The answer of a transaction may be lost after its commit: nobody works on what it leased. */
  async #releaseFailed(now_ms: number): Promise<void> {
    if (this.#failed_leases.size === 0) return;
    await releaseLeases(this.#deps.sql, [...this.#failed_leases.keys()]);
    for (const [lease_id, ends_ms] of this.#failed_leases) {
      if (ends_ms < now_ms) this.#failed_leases.delete(lease_id);
    }
  }

  #noteFailed({ lease_id, asked_ms }: LeaseAsk): void {
    this.#failed_leases.set(lease_id, asked_ms + this.#lease_ms);
  }

  #ask(rooms: ReadonlyMap<string, number>): LeaseAsk {
    const asked_ms = performance.now();
    const is_silent = asked_ms - this.#alive_ms > Math.max(silent_ms, 3 * this.#sweep_ms);
    const is_full = this.#settling.waiting() > most_unsettled || this.#is_stopping || is_silent;
    return {
      ...{ signer_id: this.#signer_id, lease_id: makeId(), lease_ms: this.#lease_ms, asked_ms },
      ...{ rooms, depth: this.#dispatcher.depth, room: is_full ? 0 : this.#dispatcher.room },
    };
  }

  async #claim(ask: LeaseAsk, after: string | null): Promise<readonly Leased[]> {
    try {
      const rows = await claimDue(this.#deps.sql, { ...ask, after });
      const full = this.#take(ask, rows);
      if (rows.length >= ask.room) return rows;
      const asked = new Set([...ask.rooms.keys(), ...rows.map(({ webhook_id }) => webhook_id)]);
      for (const id of asked) this.#dispatcher.noteMore(id, full.has(id));
      return rows;
    } catch (error) {
      this.#noteFailed(ask);
      throw error;
    }
  }

  #takePlanned(ask: LeaseAsk, rows: readonly Leased[]): void {
    for (const id of this.#take(ask, rows)) this.#dispatcher.noteMore(id, true);
    if (rows.length < ask.room) return;
    this.#scan_due = true;
    this.#loop.nudge();
  }

  /** Queues what was leased; the webhooks that got as much as there was room for. */
  #take(ask: LeaseAsk, rows: readonly Leased[]): ReadonlySet<string> {
    const { asked_ms, depth, rooms } = ask;
    const left = new Map(rooms);
    for (const { webhook_id: id } of rows) left.set(id, (left.get(id) ?? depth) - 1);
    for (const row of rows.filter(({ body }) => body === null)) this.#expire(row);
    const sent = rows.filter(({ body }) => body !== null);
    this.#dispatcher.add(sent.map((row) => ({ ...row, asked_ms })));
    return new Set([...left].filter(([, room]) => room <= 0).map(([id]) => id));
  }

  /** Too late to be of use, or its event is not kept any more. */
  #expire({ webhook_id, event_id, lease_id }: Leased): void {
    const nothing = { state: 'expired', delay_ms: 0, attempt: null } as const;
    this.#settling.add({ webhook_id, event_id, lease_id, ...nothing });
  }

  #isFresh({ webhook_id, trips, asked_ms }: Job): boolean {
    const margin_ms = Math.min(lease_margin_ms, this.#lease_ms * 0.4);
    const is_paused = trips === 0 && asked_ms <= (this.#opened.get(webhook_id) ?? -1);
    const left_ms = asked_ms + this.#lease_ms - performance.now();
    return !this.#is_stopping && !is_paused && left_ms >= margin_ms;
  }

  /** One after the other; left alone, the rows become due again when the lease is over. */
  #giveBack(rows: readonly Leased[]): void {
    const { sql, log } = this.#deps;
    if (rows.length === 0) return;
    this.#given_back = this.#given_back
      .then(() => release(sql, rows))
      .catch((error: unknown) => {
        log.warn(describeError(error), 'signer: unsent deliveries were not given back');
      });
  }

  async #send(job: Job): Promise<void> {
    const { log, clock } = this.#deps;
    const { webhook_id, trips } = job;
    try {
      const outcome = await this.#webhooks.send(letterOf(job), clock().getTime());
      if (outcome.error === 'secret_unreadable') {
        log.error({ webhook_id }, 'signer: a secret does not open with SECRET_KEY');
      }
      const settlement = judge(job, outcome, clock().getTime());
      const is_success = settlement.state === 'delivered';
      this.stats[is_success ? 'delivered' : 'failed'] += 1;
      const change = this.#breakers.note({ webhook_id, trips, is_success }, performance.now());
      if (change === null) this.#settling.add(settlement);
      else this.#setBreaker(settlement, change);
    } catch (error) {
      log.error({ webhook_id, ...describeError(error) }, 'signer: a call failed');
    }
  }

  /** Before the try is settled, so that it is not claimed again meanwhile. */
  #setBreaker(settlement: Settlement, change: BreakerChange): void {
    const { sql, log } = this.#deps;
    const { webhook_id } = settlement;
    if (change.trips > 0) {
      this.#opened.set(webhook_id, Number.POSITIVE_INFINITY);
      this.stats.breakers_opened += 1;
      log.warn({ webhook_id, ...change }, 'signer: a webhook fails and is left alone for a while');
    }
    const opening = setBreaker(sql, webhook_id, change)
      .catch((error: unknown) => {
        log.warn({ webhook_id, ...describeError(error) }, 'signer: a breaker was not written');
      })
      .then(() => {
        if (change.trips > 0) this.#opened.set(webhook_id, performance.now());
        this.#settling.add(settlement);
        this.#opening.delete(opening);
      });
    this.#opening.add(opening);
  }
}

const letterOf = (job: Job) => ({
  ...job,
  delivery_id: job.id,
  attempt: job.attempts + 1,
  offset: job.event_offset,
  event: job.event ?? '',
  body: Buffer.from(job.body ?? ''),
});

const judge = (job: Job, outcome: LetterOutcome, now_ms: number): Settlement => {
  const { webhook_id, event_id, lease_id } = job;
  const { status, error, retry_after, latency_ms, answer } = outcome;
  const number = job.attempts + 1;
  const { state, delay_ms } = judgeAttempt({
    attempt: number,
    status,
    is_answered: error === null,
    is_refused: isTargetRefused(error),
    retry_after,
    now_ms,
    random: Math.random(),
  });
  const attempt = { number, latency_ms, status, error, answer };
  return { webhook_id, event_id, lease_id, state, delay_ms, attempt };
};

const lastId = (rows: readonly Leased[]): string =>
  rows
    .map((row) => row.webhook_id)
    .sort()
    .at(-1) ?? first_id;
