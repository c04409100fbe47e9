import type { Deps } from '../../../kit/deps.js';
import { makeId } from '../../../kit/ids.js';
import { describeError } from '../../../kit/log.js';
import { type Loop, makeLoop } from '../../../kit/loop.js';
import type { Service } from '../../../kit/service.js';
import type { Webhooks } from '../parts.js';
import { type Bodies, createBodies } from './bodies.js';
import { type BreakerRules, breaker_rules } from './breaker.js';
import { type Courier, createCourier, type Errand, type SendingStats } from './courier.js';
import { Dispatcher, type DispatchLimits, dispatch_limits } from './dispatcher.js';
import {
  type Claimed,
  claimDue,
  release,
  releaseLeases,
  showAlive,
  sweepExpired,
} from './store.js';

/**
 * The sending of deliveries: claim due rows, post them, settle. A turn claims either everywhere (a
 * scan: each second) or only where a nudge told of something new and where a queue ran low. Each
 * second also ends leases that ran out, and that is the whole recovery story: a signer that died, a
 * nudge that was lost, a retry that became due are all found by it.
 */

export interface SendingOptions {
  readonly webhooks: Webhooks;
  readonly limits?: Partial<DispatchLimits>;
  /** How long a claim holds; well above the wall clock of one call. */
  readonly lease_ms?: number;
  readonly sweep_ms?: number;
  readonly breaker?: Partial<BreakerRules>;
  /** A webhook is to be switched off. */
  readonly onSick?: () => void;
}

interface SendingJob extends Errand {
  /** On this process's monotonic clock, no later than the database's. */
  readonly lease_ends_ms: number;
}

/** Smaller than any id. */
const first_id = '00000000-0000-0000-0000-000000000000';
/** Settlements that wait for Postgres; above this nothing is claimed. */
const most_unsettled = 2_000;
/** What must be left of a lease to begin a call: its wall clock and time to settle. */
const lease_margin_ms = 12_000;

export class Sending implements Service {
  readonly name = 'signer';
  readonly #deps: Deps;
  readonly #signer_id = makeId();
  readonly #lease_ms: number;
  readonly #sweep_ms: number;
  readonly #bodies: Bodies;
  readonly #courier: Courier;
  readonly #dispatcher: Dispatcher<SendingJob>;
  readonly #loop: Loop;
  #scan_due = true;
  /** Webhooks with something new. */
  #nudged = new Set<string>();
  #dead = 0;
  /** Scans that were cut go on after this webhook, so that nobody is always the last. */
  #scanned_up_to = first_id;
  #next_sweep_ms = 0;
  /** A turn found no room; the next free slots wake the loop. */
  #is_starved = false;
  #is_stopping = false;
  /** Leases of claims that failed, and until when a claim may still have been carried out. */
  readonly #failed_claims = new Map<string, number>();
  #given_back: Promise<void> = Promise.resolve();

  constructor(deps: Deps, options: SendingOptions) {
    const { webhooks, lease_ms = 30_000, sweep_ms = 1_000, onSick = () => undefined } = options;
    const limits = { ...dispatch_limits, ...options.limits };
    const margin_ms = Math.min(lease_margin_ms, lease_ms * 0.4);
    this.#deps = deps;
    this.#lease_ms = lease_ms;
    this.#sweep_ms = sweep_ms;
    this.#bodies = createBodies(deps.sql);
    this.#courier = createCourier({
      deps,
      webhooks,
      lease_ms,
      breaker: { ...breaker_rules, ...options.breaker },
      onOpened: (webhook_id) => this.#giveBack(this.#dispatcher.takeOf(webhook_id)),
      onSick,
    });
    const turn = () => this.#turn();
    this.#loop = makeLoop({ name: this.name, log: deps.log, every_ms: sweep_ms, turn });
    this.#dispatcher = new Dispatcher<SendingJob>({
      limits,
      send: async (job) => {
        const sent = await this.#courier.send(job);
        if (this.#is_starved) this.#loop.nudge();
        return sent;
      },
      isFresh: (job) => !this.#is_stopping && job.lease_ends_ms - performance.now() >= margin_ms,
      giveBack: (job) => this.#giveBack([job]),
      onHungry: () => this.#loop.nudge(),
    });
  }

  start(): Promise<void> {
    return this.#loop.start();
  }

  /** New deliveries may be there, for these webhooks or for any. */
  nudge(webhook_ids: readonly string[] | null = null): void {
    if (webhook_ids === null) this.#scan_due = true;
    else for (const id of webhook_ids) this.#nudged.add(id);
    this.#loop.nudge();
  }

  get stats(): SendingStats & { readonly dead: number } {
    return { ...this.#courier.stats, dead: this.#dead };
  }

  /** Waits for the calls in flight; what was claimed beyond them is given back. */
  async stop(): Promise<void> {
    this.#is_stopping = true;
    await this.#loop.stop();
    this.#giveBack(this.#dispatcher.takeAll());
    await this.#dispatcher.idle();
    await this.#given_back;
    await this.#courier.drain();
  }

  async #turn(): Promise<'again' | 'rest'> {
    await this.#sweepIfDue();
    const room = this.#courier.waiting() > most_unsettled ? 0 : this.#dispatcher.room;
    this.#is_starved = room === 0;
    if (this.#is_starved) return 'rest';
    const is_scan = this.#scan_due;
    this.#scan_due = false;
    const count = is_scan ? await this.#scan(room) : await this.#refill(room);
    const is_hungry = count > 0 && this.#dispatcher.hungryRooms().size > 0;
    return this.#scan_due || this.#nudged.size > 0 || is_hungry ? 'again' : 'rest';
  }

  async #sweepIfDue(): Promise<void> {
    const { sql, log } = this.#deps;
    const now_ms = performance.now();
    if (now_ms < this.#next_sweep_ms) return;
    this.#next_sweep_ms = now_ms + this.#sweep_ms;
    this.#scan_due = true;
    await showAlive(sql, this.#signer_id);
    await this.#releaseFailed(now_ms);
    const swept = await sweepExpired(sql);
    if (swept.length > 0) log.warn({ count: swept.length }, 'signer: leases ran out');
    for (const { id, state } of swept) {
      if (state !== 'exhausted') continue;
      this.#dead += 1;
      log.error({ delivery_id: id }, 'signer: a delivery was claimed five times without a result');
    }
  }

  /** The answer of a claim may be lost after its commit: then nobody works on what it holds. */
  async #releaseFailed(now_ms: number): Promise<void> {
    if (this.#failed_claims.size === 0) return;
    await releaseLeases(this.#deps.sql, [...this.#failed_claims.keys()]);
    for (const [lease_id, ends_ms] of this.#failed_claims) {
      if (ends_ms < now_ms) this.#failed_claims.delete(lease_id);
    }
  }

  async #scan(room: number): Promise<number> {
    const after = this.#scanned_up_to;
    if (after === first_id) this.#nudged.clear();
    const rooms = new Map([...this.#dispatcher.rooms()].filter(([id]) => id > after));
    const rows = await this.#claim(rooms, room, after);
    const is_cut = rows.length >= room;
    this.#scan_due ||= is_cut || after !== first_id;
    this.#scanned_up_to = is_cut ? lastId(rows) : first_id;
    return rows.length;
  }

  async #refill(room: number): Promise<number> {
    const nudged = [...this.#nudged].splice(0);
    this.#nudged.clear();
    const rooms = new Map([...this.#dispatcher.roomsAt(nudged), ...this.#dispatcher.hungryRooms()]);
    if (rooms.size === 0) return 0;
    const rows = await this.#claim(rooms, room, null);
    // What found no room is left to a scan.
    if (rows.length >= room) this.#scan_due = true;
    return rows.length;
  }

  async #claim(
    rooms: Map<string, number>,
    room: number,
    others_after: string | null,
  ): Promise<readonly Claimed[]> {
    for (const id of this.#courier.opening) {
      if (others_after !== null || rooms.has(id)) rooms.set(id, 0);
    }
    const lease_id = makeId();
    const started_ms = performance.now();
    const lease_ends_ms = started_ms + this.#lease_ms;
    try {
      const rows = await claimDue(this.#deps.sql, {
        signer_id: this.#signer_id,
        lease_id,
        lease_ms: this.#lease_ms,
        rooms,
        room,
        others_after,
        room_at_others: this.#dispatcher.room_at_others,
      });
      const made = await this.#makeJobs(rows, lease_ends_ms);
      // A breaker may have been opened while this was under way.
      const isLeft = ({ webhook_id, trips }: SendingJob): boolean =>
        trips === 0 && this.#courier.hasOpenedSince(webhook_id, started_ms);
      this.#giveBack(made.filter(isLeft));
      const jobs = made.filter((job) => !isLeft(job));
      this.#dispatcher.add({ jobs, asked: rooms, is_cut: rows.length >= room });
      return rows;
    } catch (error) {
      this.#failed_claims.set(lease_id, lease_ends_ms);
      throw error;
    }
  }

  async #makeJobs(rows: readonly Claimed[], lease_ends_ms: number): Promise<SendingJob[]> {
    const found = await this.#bodies.read(rows.filter((row) => !row.is_expired));
    const jobs: SendingJob[] = [];
    for (const row of rows) {
      const body = row.is_expired ? undefined : found.get(row.event_offset);
      // An event that is no longer kept cannot be sent either.
      if (body === undefined) this.#courier.expire(row);
      // Added to the row, which is nobody else's: copying it costs more than all the rest here.
      else jobs.push(Object.assign(row, body, { lease_ends_ms }));
    }
    return jobs;
  }

  /** One after the other; left alone, the rows become due again when the lease is over. */
  #giveBack(rows: readonly Claimed[]): void {
    const { sql, log } = this.#deps;
    if (rows.length === 0) return;
    this.#given_back = this.#given_back
      .then(() => release(sql, rows))
      .catch((error: unknown) => {
        log.warn(describeError(error), 'signer: unsent deliveries were not given back');
      });
  }
}

const lastId = (rows: readonly Claimed[]): string =>
  rows
    .map((row) => row.webhook_id)
    .sort()
    .at(-1) ?? first_id;
