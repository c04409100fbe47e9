/**
 * Who is sent to next. Holds what a signer has claimed, in one queue an endpoint, and keeps the
 * limits: so many calls in flight an endpoint, an owner and in all, and some slots that only first
 * attempts may take, so that a heap of retries cannot hold up fresh events.
 *
 * A quick endpoint may have a longer queue claimed for it (its depth doubles up to `most_queued`),
 * which saves claims; a slow one has no more waiting than are being sent.
 */

export interface DispatchLimits {
  readonly endpoint: number;
  readonly owner: number;
  readonly total: number;
  /** Of `total`, how many may be retries. */
  readonly retries: number;
  /** Longest queue of one endpoint. */
  readonly most_queued: number;
  /** Sent and waiting together; slow endpoints alone cannot fill it. */
  readonly most_claimed: number;
  /** An endpoint that answers within this counts as quick. */
  readonly quick_ms: number;
}

export const dispatch_limits: DispatchLimits = {
  endpoint: 2,
  owner: 8,
  total: 256,
  retries: 192,
  most_queued: 32,
  most_claimed: 4_096,
  quick_ms: 250,
};

export interface Job {
  readonly webhook_id: string;
  readonly owner_id: string;
  /** Attempts made before. */
  readonly attempts: number;
  /** Sent again on demand, and so in no more haste than a retry. */
  readonly is_replay: boolean;
}

export interface DispatcherOptions<J extends Job> {
  readonly limits: DispatchLimits;
  /** Sends; fulfilled with what it took when the call is over, and never rejected. */
  readonly send: (job: J) => Promise<{ readonly latency_ms: number }>;
  /** False: the job has waited too long and is given back instead of being sent. */
  readonly isFresh: (job: J) => boolean;
  readonly giveBack: (job: J) => void;
  /** More could be claimed now. */
  readonly onHungry: () => void;
}

export interface ClaimedJobs<J> {
  readonly jobs: readonly J[];
  /** How many were asked for at known endpoints; `room_at_others` were at any other. */
  readonly asked: ReadonlyMap<string, number>;
  /**
   * There was no room for all: an endpoint that got fewer than asked may have more all the same.
   */
  readonly is_cut: boolean;
}

/** Bounds the work of one turn when nobody that waits can use the slot. */
const most_pumped = 16;

interface Endpoint<J> {
  readonly id: string;
  readonly owner: Owner<J>;
  queue: J[];
  in_flight: number;
  depth: number;
  has_more: boolean;
}

interface Owner<J> {
  readonly id: string;
  readonly endpoints: Set<Endpoint<J>>;
  in_flight: number;
}

const isRetry = (job: Job): boolean => job.attempts > 0 || job.is_replay;

export class Dispatcher<J extends Job> {
  readonly #options: DispatcherOptions<J>;
  readonly #limits: DispatchLimits;
  readonly #endpoints = new Map<string, Endpoint<J>>();
  readonly #owners = new Map<string, Owner<J>>();
  /** Endpoints that had a job and no slot, in the order in which they get the next one. */
  readonly #stalled = new Set<Endpoint<J>>();
  #in_flight = 0;
  #retries = 0;
  #queued = 0;
  #on_idle: (() => void)[] = [];

  constructor(options: DispatcherOptions<J>) {
    this.#options = options;
    this.#limits = options.limits;
  }

  /** How many jobs to ask for at an endpoint that holds none. */
  get room_at_others(): number {
    return this.#limits.endpoint;
  }

  /** How many jobs may be claimed in all. */
  get room(): number {
    return Math.max(0, this.#limits.most_claimed - this.#in_flight - this.#queued);
  }

  /** Takes what a claim brought and sends what has a slot. */
  add({ jobs, asked, is_cut }: ClaimedJobs<J>): void {
    const got = new Map<string, number>();
    for (const job of jobs) {
      this.#endpointFor(job).queue.push(job);
      this.#queued += 1;
      got.set(job.webhook_id, (got.get(job.webhook_id) ?? 0) + 1);
    }
    for (const id of new Set([...asked.keys(), ...got.keys()])) {
      const endpoint = this.#endpoints.get(id);
      if (endpoint === undefined || asked.get(id) === 0) continue;
      const wanted = asked.get(id) ?? this.room_at_others;
      endpoint.has_more = is_cut || (got.get(id) ?? 0) >= wanted;
      this.#pump(endpoint);
      this.#forgetIfDone(endpoint);
    }
  }

  /** Room at each endpoint that holds jobs; 0 when it is full. */
  rooms(): Map<string, number> {
    return roomsOf([...this.#endpoints.values()]);
  }

  /** Room at these endpoints, whether they hold jobs or not. */
  roomsAt(ids: Iterable<string>): Map<string, number> {
    return new Map(
      [...ids].map((id) => {
        const known = this.#endpoints.get(id);
        return [id, known === undefined ? this.room_at_others : askRoom(known)];
      }),
    );
  }

  /** Room at endpoints whose queue ran low although there is more for them. */
  hungryRooms(): Map<string, number> {
    return roomsOf([...this.#endpoints.values()].filter(isHungry));
  }

  /** Takes every job that is not being sent. */
  takeAll(): J[] {
    const all = [...this.#endpoints.values()].flatMap((endpoint) => endpoint.queue.splice(0));
    this.#queued = 0;
    this.#stalled.clear();
    return all;
  }

  /** Takes the jobs of one endpoint that are not being sent; it asks for no more by itself. */
  takeOf(webhook_id: string): J[] {
    const endpoint = this.#endpoints.get(webhook_id);
    if (endpoint === undefined) return [];
    const jobs = endpoint.queue.splice(0);
    this.#queued -= jobs.length;
    endpoint.has_more = false;
    this.#stalled.delete(endpoint);
    return jobs;
  }

  /** Fulfilled when nothing is in flight. */
  async idle(): Promise<void> {
    if (this.#in_flight === 0) return;
    await new Promise<void>((resolve) => {
      this.#on_idle.push(resolve);
    });
  }

  #endpointFor(job: J): Endpoint<J> {
    const known = this.#endpoints.get(job.webhook_id);
    if (known !== undefined) return known;
    const owner: Owner<J> = this.#owners.get(job.owner_id) ?? {
      id: job.owner_id,
      endpoints: new Set(),
      in_flight: 0,
    };
    const endpoint: Endpoint<J> = {
      id: job.webhook_id,
      owner,
      queue: [],
      in_flight: 0,
      depth: this.#limits.endpoint,
      has_more: false,
    };
    owner.endpoints.add(endpoint);
    this.#owners.set(owner.id, owner);
    this.#endpoints.set(endpoint.id, endpoint);
    return endpoint;
  }

  #forgetIfDone(endpoint: Endpoint<J>): void {
    if (endpoint.in_flight > 0 || endpoint.queue.length > 0 || endpoint.has_more) return;
    const { owner } = endpoint;
    this.#endpoints.delete(endpoint.id);
    this.#stalled.delete(endpoint);
    owner.endpoints.delete(endpoint);
    if (owner.endpoints.size === 0) this.#owners.delete(owner.id);
  }

  #hasSlot({ in_flight, owner }: Endpoint<J>): boolean {
    return in_flight < this.#limits.endpoint && owner.in_flight < this.#limits.owner;
  }

  #pump(endpoint: Endpoint<J>): void {
    while (this.#hasSlot(endpoint) && this.#in_flight < this.#limits.total) {
      const job = this.#takeNext(endpoint);
      if (job === undefined) break;
      this.#start(endpoint, job);
    }
    // Without a slot of its own it is pumped again when one of its calls, or its owner's, ends.
    if (this.#hasSlot(endpoint) && endpoint.queue.length > 0) this.#stalled.add(endpoint);
    else this.#stalled.delete(endpoint);
  }

  /** The next job that may be sent; jobs that waited too long are given back on the way. */
  #takeNext(endpoint: Endpoint<J>): J | undefined {
    const { isFresh, giveBack } = this.#options;
    const { queue } = endpoint;
    const only_first = this.#retries >= this.#limits.retries;
    for (let at = 0; at < queue.length; ) {
      const job = queue[at] as J;
      const is_fresh = isFresh(job);
      if (is_fresh && only_first && isRetry(job)) {
        at += 1;
        continue;
      }
      queue.splice(at, 1);
      this.#queued -= 1;
      if (is_fresh) return job;
      endpoint.has_more = true;
      giveBack(job);
    }
    return undefined;
  }

  #start(endpoint: Endpoint<J>, job: J): void {
    endpoint.in_flight += 1;
    endpoint.owner.in_flight += 1;
    this.#in_flight += 1;
    if (isRetry(job)) this.#retries += 1;
    void this.#options.send(job).then(({ latency_ms }) => this.#finish(endpoint, job, latency_ms));
  }

  #finish(endpoint: Endpoint<J>, job: J, latency_ms: number): void {
    const { owner } = endpoint;
    const { endpoint: least, most_queued, quick_ms } = this.#limits;
    endpoint.in_flight -= 1;
    owner.in_flight -= 1;
    this.#in_flight -= 1;
    if (isRetry(job)) this.#retries -= 1;
    endpoint.depth = latency_ms <= quick_ms ? Math.min(endpoint.depth * 2, most_queued) : least;
    // Those that had to wait come before the one that has just had its turn.
    this.#pumpStalled();
    this.#pump(endpoint);
    for (const sister of owner.endpoints) if (sister.queue.length > 0) this.#pump(sister);
    if (isHungry(endpoint)) this.#options.onHungry();
    this.#forgetIfDone(endpoint);
    if (this.#in_flight === 0) for (const done of this.#on_idle.splice(0)) done();
  }

  #pumpStalled(): void {
    let tries = most_pumped;
    for (const waiting of this.#stalled) {
      if (tries === 0 || this.#in_flight >= this.#limits.total) return;
      tries -= 1;
      // It goes to the end of the set when it still has to wait.
      this.#stalled.delete(waiting);
      this.#pump(waiting);
    }
  }
}

const isHungry = <J>(endpoint: Endpoint<J>): boolean =>
  endpoint.has_more && endpoint.queue.length <= endpoint.depth / 2;

/** A full endpoint is not asked for now, and may have more when it has room again. */
const askRoom = <J>(endpoint: Endpoint<J>): number => {
  const room = Math.max(0, endpoint.depth - endpoint.queue.length);
  if (room === 0) endpoint.has_more = true;
  return room;
};

const roomsOf = <J>(endpoints: readonly Endpoint<J>[]): Map<string, number> =>
  new Map(endpoints.map((endpoint) => [endpoint.id, askRoom(endpoint)]));
