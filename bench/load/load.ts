import { setTimeout as delay } from 'node:timers/promises';

/**
 * Load on one server. Closed loop: a fixed number of requests is in flight, and each answer
 * triggers the next request. Open loop: requests are due at a fixed rate regardless of the server,
 * and latency counts from the moment a request was due. A stall therefore shows in every request
 * that it delayed (no coordinated omission).
 */
export interface LoadOptions {
  /** Loopback only. */
  readonly port: number;
  /** Number of requests in flight. Also the number of connections, unless agents have their own. */
  readonly in_flight: number;
  /** Number of connections, one per agent. Agents take turns. Closed loop only. */
  readonly own_connections?: number;
  readonly seconds: number;
  /** Requests per second. Absent for a closed loop. */
  readonly rate?: number;
  /** True: the round ends with the last answer, and the rate covers all requests. */
  readonly whole?: boolean;
  /** The status that counts as success. */
  readonly wanted_status: number;
  /** Another status that is not a failure, such as a refusal under overload. */
  readonly allowed_status?: number;
}

export type LoadResult = Awaited<ReturnType<typeof runLoad>>;

export interface Connection {
  /** Sends request `k`. */
  send(k: number, bytes: Buffer): void;
  close(): void;
}

/** Events that a connection reports. */
export interface Events {
  onAnswer(k: number, status: number, body: () => string): void;
  /** The connection closed with this many requests in flight. */
  onClose(in_flight: number, why: string): void;
}

/** The smallest value such that at least `share` (0–1) of the values do not exceed it. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;

export const latenciesOf = (values_ms: readonly number[]) => {
  const sorted = Float64Array.from(values_ms).sort();
  const [p50_ms, p99_ms, max_ms] = [0.5, 0.99, 1].map((share) => quantile(sorted, share));
  return { p50_ms: p50_ms!, p99_ms: p99_ms!, max_ms: max_ms! };
};

const answer_deadline_ms = 15_000;
const opened_at_once = 64;

/** Runs one load to its end. Every sent request is either answered or counted as broken. */
export const runLoad = async (
  options: LoadOptions,
  requests: readonly Buffer[],
  connect: (events: Events, n: number) => Promise<Connection>,
) => {
  const { in_flight: width, own_connections, seconds, rate, whole = false } = options;
  const { wanted_status, allowed_status } = options;
  const connections: Connection[] = [];
  const idle: number[] = [];
  const due_ms = new Float64Array(requests.length);
  const latencies_ms: number[] = [];
  const problems: string[] = [];
  let [next, in_flight, in_time, odd, broken, last_ms] = [0, 0, 0, 0, 0, 0];
  let [start_ms, end_ms] = [0, Number.POSITIVE_INFINITY];
  let [ran_dry, is_over] = [false, false];

  const nextDue = (per_second: number): number => start_ms + (next * 1_000) / per_second;

  const send = (n: number, due: number): void => {
    const request = requests[next];
    if (request === undefined) {
      ran_dry ||= !whole;
      return;
    }
    due_ms[next] = due;
    in_flight += 1;
    connections[n]!.send(next++, request);
  };

  /** Called when connection `n` may send its next request. */
  const free = (n: number, now_ms: number): void => {
    if (now_ms >= end_ms) return;
    if (rate === undefined) {
      send(own_connections === undefined ? n : next % own_connections, now_ms);
      return;
    }
    if (nextDue(rate) > now_ms) idle.push(n);
    else send(n, nextDue(rate));
  };

  const onAnswer = (n: number, k: number, status: number, body: () => string): void => {
    last_ms = performance.now();
    in_flight -= 1;
    if (status === wanted_status) {
      latencies_ms.push(last_ms - due_ms[k]!);
      if (last_ms <= end_ms) in_time += 1;
    } else if (status !== allowed_status) {
      odd += 1;
      if (odd <= 5) problems.push(`${status} ${body().slice(0, 500)}`);
    }
    free(n, last_ms);
  };

  const onClose = (n: number, lost: number, why: string): void => {
    if (is_over) return;
    // A server may close an idle connection, which is then no longer used.
    if (idle.includes(n)) idle.splice(idle.indexOf(n), 1);
    broken += lost;
    in_flight -= lost;
    if (why !== '') problems.push(why.slice(0, 500));
  };

  const connectOne = (n: number): Promise<Connection> => {
    const onAnswerOf: Events['onAnswer'] = (k, status, body) => onAnswer(n, k, status, body);
    return connect({ onAnswer: onAnswerOf, onClose: (lost, why) => onClose(n, lost, why) }, n);
  };
  const all = Array.from({ length: own_connections ?? width }, (_, n) => n);
  while (all.length > 0) {
    const some = all.splice(0, opened_at_once).map(connectOne);
    connections.push(...(await Promise.all(some)));
  }

  start_ms = performance.now();
  end_ms = start_ms + seconds * 1_000;
  for (let n = 0; n < width; n += 1) free(n, start_ms);
  const isDone = (): boolean => whole && next === requests.length && in_flight === 0;
  while (performance.now() < end_ms && !isDone()) {
    if (rate === undefined) {
      await delay(whole ? 1 : end_ms - performance.now());
      continue;
    }
    const now_ms = performance.now();
    while (idle.length > 0 && nextDue(rate) <= now_ms) free(idle.pop()!, now_ms);
    await delay(1);
  }
  const give_up_ms = performance.now() + answer_deadline_ms;
  while (in_flight > 0 && performance.now() < give_up_ms) await delay(5);
  is_over = true;
  for (const connection of connections) connection.close();

  const lost = broken + in_flight;
  const done = latencies_ms.length;
  if (odd > 0) problems.unshift(`${odd} answers were not ${wanted_status}`);
  if (lost > 0) problems.push(`${lost} connections broke`);
  if (ran_dry || (whole && next < requests.length)) {
    problems.push('the prepared requests and the time did not end together');
  }
  return {
    sent: next,
    /** Number of answers with the wanted status, including answers after the end of the round. */
    done,
    per_second: whole ? done / ((last_ms - start_ms) / 1_000) : in_time / seconds,
    ...latenciesOf(latencies_ms),
    /** Everything that makes the round invalid. */
    problems,
  };
};
