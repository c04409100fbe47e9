/**
 * Who is sent to next. Holds what a signer has leased, in one queue an endpoint, and keeps the
 * limits: so many calls in flight an endpoint, an owner and in all, and some slots that only first
 * attempts may take, so that a heap of retries cannot hold up fresh events.
 */

export interface DispatchLimits {
  readonly endpoint: number;
  readonly owner: number;
  readonly total: number;
  /** Of `total`, how many may be retries. */
  readonly retries: number;
  /** Longest queue of one endpoint. */
  readonly most_queued: number;
  /** Sent and waiting together. */
  readonly most_claimed: number;
}

export const dispatch_limits: DispatchLimits = {
  endpoint: 2,
  owner: 8,
  total: 256,
  retries: 192,
  most_queued: 32,
  most_claimed: 4_096,
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
  /** Sends; fulfilled when the call is over, and never rejected. */
  readonly send: (job: J) => Promise<void>;
  /** False: the job has waited too long and is given back instead of being sent. */
  readonly isFresh: (job: J) => boolean;
  readonly giveBack: (job: J) => void;
  /** An endpoint has room, and more may be due for it. */
  readonly onHungry: () => void;
}

interface Endpoint<J> {
  readonly id: string;
  readonly owner: Owner<J>;
  readonly queue: J[];
  in_flight: number;
  /** More may be due for it than is held. */
  has_more: boolean;
}

interface Owner<J> {
  readonly id: string;
  readonly endpoints: Set<Endpoint<J>>;
  in_flight: number;
}

/** Bounds the work of one turn when nobody that waits can use the slot. */
const most_passed = 16;

const isRetry = (job: Job): boolean => job.attempts > 0 || job.is_replay;

export class Dispatcher<J extends Job> {
  readonly #options: DispatcherOptions<J>;
  readonly #endpoints = new Map<string, Endpoint<J>>();
  readonly #owners = new Map<string, Owner<J>>();
  /** Endpoints with a job and a slot of their own, in the order in which they are served. */
  readonly #ready = new Set<Endpoint<J>>();
  #in_flight = 0;
  #retries = 0;
  #queued = 0;
  #on_idle: (() => void)[] = [];

  constructor(options: DispatcherOptions<J>) {
    this.#options = options;
  }

  /** How many jobs may be leased in all. */
  get most(): number {
    return this.#options.limits.most_claimed;
  }

  /** How many more. */
  get room(): number {
    return Math.max(0, this.most - this.#in_flight - this.#queued);
  }

  /** Room at an endpoint that holds no jobs. */
  get depth(): number {
    return this.#options.limits.most_queued;
  }

  /** Room at each endpoint that holds jobs. */
  rooms(): Map<string, number> {
    return new Map([...this.#endpoints.values()].map((one) => [one.id, this.#roomAt(one)]));
  }

  /** The same of endpoints whose queue ran low although more may be due for them. */
  hungryRooms(): Map<string, number> {
    const hungry = [...this.#endpoints.values()].filter((one) => this.#isHungry(one));
    return new Map(hungry.map((one) => [one.id, this.#roomAt(one)]));
  }

  /** Takes what was leased and sends what has a slot. */
  add(jobs: readonly J[]): void {
    this.#queued += jobs.length;
    for (const job of jobs) {
      const endpoint = this.#endpointFor(job);
      endpoint.queue.push(job);
      this.#update(endpoint);
    }
    this.#pump();
  }

  /** Says of an endpoint that holds jobs whether more may be due for it. */
  noteMore(webhook_id: string, has_more: boolean): void {
    const endpoint = this.#endpoints.get(webhook_id);
    if (endpoint === undefined) return;
    endpoint.has_more = has_more;
    this.#update(endpoint);
  }

  /** Takes every job that is not being sent. */
  takeAll(): J[] {
    this.#queued = 0;
    this.#ready.clear();
    return [...this.#endpoints.values()].flatMap(({ queue }) => queue.splice(0));
  }

  /** Fulfilled when nothing is in flight. */
  async idle(): Promise<void> {
    if (this.#in_flight === 0) return;
    await new Promise<void>((resolve) => {
      this.#on_idle.push(resolve);
    });
  }

  #roomAt({ queue }: Endpoint<J>): number {
    return Math.max(0, this.#options.limits.most_queued - queue.length);
  }

  #isHungry({ has_more, queue }: Endpoint<J>): boolean {
    return has_more && queue.length <= this.#options.limits.most_queued / 2;
  }

  #endpointFor({ webhook_id: id, owner_id }: J): Endpoint<J> {
    const known = this.#endpoints.get(id);
    if (known !== undefined) return known;
    const owner: Owner<J> = this.#owners.get(owner_id) ?? {
      id: owner_id,
      endpoints: new Set(),
      in_flight: 0,
    };
    const endpoint: Endpoint<J> = { id, owner, queue: [], in_flight: 0, has_more: false };
    owner.endpoints.add(endpoint);
    this.#owners.set(owner_id, owner);
    this.#endpoints.set(id, endpoint);
    return endpoint;
  }

  #hasSlot({ owner, in_flight }: Endpoint<J>): boolean {
    const { limits } = this.#options;
    return in_flight < limits.endpoint && owner.in_flight < limits.owner;
  }

  /** Puts it in the line of those that may be sent to, or out of it; forgets it when it is done. */
  #update(endpoint: Endpoint<J>): void {
    const { owner, queue, in_flight } = endpoint;
    if (this.#hasSlot(endpoint) && queue.length > 0) this.#ready.add(endpoint);
    else this.#ready.delete(endpoint);
    if (in_flight === 0 && queue.length === 0 && !endpoint.has_more) {
      this.#endpoints.delete(endpoint.id);
      owner.endpoints.delete(endpoint);
      if (owner.endpoints.size === 0) this.#owners.delete(owner.id);
    }
  }

  #pump(): void {
    let passed = 0;
    for (const endpoint of this.#ready) {
      if (this.#in_flight >= this.#options.limits.total || passed === most_passed) return;
      this.#ready.delete(endpoint);
      // A sister may have taken the last slot of their owner.
      if (!this.#hasSlot(endpoint)) continue;
      const job = this.#takeNext(endpoint);
      if (job === undefined) passed += 1;
      else this.#start(endpoint, job);
      // At the end of the line, and so this loop comes to it again.
      this.#update(endpoint);
    }
  }

  /** The next job that may be sent; jobs that waited too long are given back on the way. */
  #takeNext(endpoint: Endpoint<J>): J | undefined {
    const { isFresh, giveBack, limits } = this.#options;
    const { queue } = endpoint;
    const only_first = this.#retries >= limits.retries;
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
    this.#count(endpoint, job, 1);
    void this.#options.send(job).then(() => this.#finish(endpoint, job));
  }

  #count(endpoint: Endpoint<J>, job: J, more: 1 | -1): void {
    endpoint.in_flight += more;
    endpoint.owner.in_flight += more;
    this.#in_flight += more;
    if (isRetry(job)) this.#retries += more;
  }

  #finish(endpoint: Endpoint<J>, job: J): void {
    this.#count(endpoint, job, -1);
    for (const sister of endpoint.owner.endpoints) this.#update(sister);
    this.#pump();
    if (this.#isHungry(endpoint)) this.#options.onHungry();
    if (this.#in_flight === 0) for (const done of this.#on_idle.splice(0)) done();
  }
}
