import { setTimeout as delay } from 'node:timers/promises';

/** The options of a load, and how it counts its answers. */
export interface LoadOptions {
  /** Loopback only. */
  readonly port: number;
  /** Requests in flight. */
  readonly in_flight: number;
  readonly seconds: number;
  /** Requests per second; absent for the closed loop. */
  readonly rate?: number;
  /** Sends all requests and ends with the last answer; the rate is of all. Closed loop only. */
  readonly whole?: boolean;
  /** The status that counts as done. */
  readonly wanted_status: number;
  /** A further status that is no failure, such as the refusals of an overload. */
  readonly allowed_status?: number;
}

export interface LoadResult {
  readonly sent: number;
  /** Answers with the wanted status, also those that came after the end of the round. */
  readonly done: number;
  readonly per_second: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
  /** Whatever makes the round invalid. */
  readonly problems: readonly string[];
}

/** The least value that at least `share` (0–1) of the values do not exceed. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;

export const latenciesOf = (values_ms: readonly number[]) => {
  const sorted = Float64Array.from(values_ms).sort();
  const at = (share: number): number => quantile(sorted, share);
  return { p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1) };
};

const answer_deadline_ms = 15_000;

export class Tally {
  readonly #options: LoadOptions;
  readonly #requests: readonly Buffer[];
  readonly #latencies_ms: number[] = [];
  readonly #statuses = new Map<number, number>();
  readonly odd_answers: string[] = [];
  #in_time = 0;
  #last_ms = 0;
  #ran_dry = false;
  /** Number of the next request. */
  next = 0;
  in_flight = 0;
  broken = 0;
  start_ms = 0;
  end_ms = 0;

  constructor(options: LoadOptions, requests: readonly Buffer[]) {
    this.#options = options;
    this.#requests = requests;
  }

  /** The bytes of the next request; none is sent twice. */
  take(): Buffer | undefined {
    const request = this.#requests[this.next];
    if (request === undefined) {
      this.#ran_dry ||= this.#options.whole !== true;
      return undefined;
    }
    this.next += 1;
    this.in_flight += 1;
    return request;
  }

  count(status: number, due_ms: number, now_ms: number, body: () => string): void {
    const { wanted_status, allowed_status } = this.#options;
    this.in_flight -= 1;
    this.#last_ms = now_ms;
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    if (status === wanted_status) {
      this.#latencies_ms.push(now_ms - due_ms);
      if (now_ms <= this.end_ms) this.#in_time += 1;
    } else if (status !== allowed_status && this.odd_answers.length < 5) {
      this.odd_answers.push(`  ${status} ${body().slice(0, 500)}`);
    }
  }

  /** Runs the load; what was sent is answered or counted as broken. */
  async measure(send: () => void | Promise<void>): Promise<LoadResult> {
    const { seconds, whole } = this.#options;
    this.start_ms = performance.now();
    this.end_ms = this.start_ms + seconds * 1_000;
    await send();
    const all_sent = (): boolean => this.next === this.#requests.length && this.in_flight === 0;
    while (performance.now() < this.end_ms && !(whole === true && all_sent())) await delay(5);
    const give_up_ms = performance.now() + answer_deadline_ms;
    while (this.in_flight > 0 && performance.now() < give_up_ms) await delay(5);
    return this.#result();
  }

  #result(): LoadResult {
    const { whole, seconds, wanted_status, allowed_status } = this.#options;
    const done = this.#latencies_ms.length;
    const odd = [...this.#statuses].filter(
      ([one]) => ![wanted_status, allowed_status].includes(one),
    );
    const broken = this.broken + this.in_flight;
    const is_short = this.#ran_dry || (whole === true && this.next < this.#requests.length);
    return {
      ...{ sent: this.next, done, ...latenciesOf(this.#latencies_ms) },
      per_second:
        whole === true ? done / ((this.#last_ms - this.start_ms) / 1_000) : this.#in_time / seconds,
      problems: [
        ...odd.map(([status, count]) => `${count} answers were ${status}`),
        ...(broken > 0 ? [`${broken} connections broke`] : []),
        ...(is_short ? ['the prepared requests and the time did not end together'] : []),
        ...this.odd_answers,
      ],
    };
  }
}
