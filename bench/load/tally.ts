import { setTimeout as delay } from 'node:timers/promises';
import { type Histogram, makeHistogram } from './histogram.js';

/** What every load is asked and says, and how it counts its answers. */
export interface LoadOptions {
  /** Loopback only. */
  readonly port: number;
  /** Requests in flight. */
  readonly connections: number;
  /** Connections, one of each agent: request k goes over number k mod so many. Closed loop only. */
  readonly own_connections?: number;
  /** Every request over a connection that is opened for it. Closed loop only. */
  readonly new_connections?: boolean;
  readonly seconds: number;
  /** Requests per second; absent for the closed loop. */
  readonly rate?: number;
  /** Sends all requests and ends with the last answer; the rate is of all. Closed loop only. */
  readonly whole?: boolean;
  /** The wire bytes of request 0, 1, …; none is sent twice. */
  readonly requests: readonly Buffer[];
  /** The status that counts as done. */
  readonly wanted_status: number;
  /** A further status that is no failure, such as the refusals of an overload. */
  readonly allowed_status?: number;
}

export interface LoadResult {
  readonly sent: number;
  /** Answers with the wanted status, also those that came after the end of the round. */
  readonly done: number;
  readonly done_in_time: number;
  readonly per_second: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Bodies of the first few answers with another status. */
  readonly odd_answers: readonly string[];
  readonly broken_connections: number;
  /** The list of requests ended before the time did. */
  readonly ran_dry: boolean;
  readonly cpu_seconds: number;
  readonly cpu_us_per_request: number;
}

export interface Tally {
  readonly options: LoadOptions;
  readonly latencies: Histogram;
  readonly statuses: Map<number, number>;
  readonly odd_answers: string[];
  /** Number of the next request. */
  next: number;
  in_flight: number;
  done_in_time: number;
  broken: number;
  start_ms: number;
  end_ms: number;
  /** When the last answer came. */
  last_ms: number;
  ran_dry: boolean;
}

const answer_deadline_ms = 15_000;

export const makeTally = (options: LoadOptions): Tally => ({
  options,
  latencies: makeHistogram(),
  statuses: new Map(),
  odd_answers: [],
  next: 0,
  in_flight: 0,
  done_in_time: 0,
  broken: 0,
  start_ms: 0,
  end_ms: Number.POSITIVE_INFINITY,
  last_ms: 0,
  ran_dry: false,
});

const startClock = (tally: Tally): void => {
  tally.start_ms = performance.now();
  tally.end_ms = tally.start_ms + tally.options.seconds * 1000;
};

/** The bytes of the next request, or undefined when there is none. */
export const takeNext = (tally: Tally): Buffer | undefined => {
  const request = tally.options.requests[tally.next];
  if (request === undefined) {
    if (tally.options.whole !== true) tally.ran_dry = true;
    return undefined;
  }
  tally.next++;
  tally.in_flight++;
  return request;
};

export const countAnswer = (
  tally: Tally,
  status: number,
  due_ms: number,
  now_ms: number,
  body: () => string,
): void => {
  const { statuses, odd_answers, options } = tally;
  tally.in_flight--;
  tally.last_ms = now_ms;
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  if (status === options.wanted_status) {
    tally.latencies.record((now_ms - due_ms) * 1000);
    if (now_ms <= tally.end_ms) tally.done_in_time++;
  } else if (status !== options.allowed_status && odd_answers.length < 5) {
    odd_answers.push(`${status} ${body().slice(0, 500)}`);
  }
};

/** Waits until the time is over or, where all requests are to be sent, they are answered. */
export const waitForEnd = async (tally: Tally): Promise<void> => {
  const { whole, requests } = tally.options;
  if (whole !== true) {
    await delay(tally.end_ms - performance.now());
    return;
  }
  while (performance.now() < tally.end_ms) {
    if (tally.next === requests.length && tally.in_flight === 0) return;
    await delay(5);
  }
};

/** Waits for the answers to what is in flight. */
const waitForAnswers = async (tally: Tally): Promise<void> => {
  const give_up_ms = performance.now() + answer_deadline_ms;
  while (tally.in_flight > 0 && performance.now() < give_up_ms) await delay(5);
};

const resultOf = (tally: Tally, cpu_seconds: number): LoadResult => {
  const { latencies, done_in_time, options, odd_answers, next, start_ms } = tally;
  const whole_s = (tally.last_ms - start_ms) / 1000;
  return {
    ...{ sent: next, done: latencies.count, done_in_time, odd_answers, cpu_seconds },
    per_second: options.whole === true ? latencies.count / whole_s : done_in_time / options.seconds,
    p50_ms: latencies.quantile(0.5) / 1000,
    p99_ms: latencies.quantile(0.99) / 1000,
    max_ms: latencies.max_us / 1000,
    statuses: Object.fromEntries(tally.statuses),
    broken_connections: tally.broken + tally.in_flight,
    ran_dry: tally.ran_dry || (options.whole === true && next < options.requests.length),
    cpu_us_per_request: (cpu_seconds * 1e6) / Math.max(1, next),
  };
};

/** Runs the load from its first request on; what was sent is answered or counted as broken. */
export const measure = async (tally: Tally, send: () => Promise<void>): Promise<LoadResult> => {
  const cpu = process.cpuUsage();
  startClock(tally);
  await send();
  await waitForAnswers(tally);
  const used = process.cpuUsage(cpu);
  return resultOf(tally, (used.user + used.system) / 1e6);
};
