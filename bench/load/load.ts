import { setTimeout as delay } from 'node:timers/promises';
import type { Connection, Events } from './connections.js';
import { latenciesOf } from './latencies.js';

/**
 * Load on one server. Closed loop: so many requests are in flight, and each answer sends the next
 * one. Open loop: requests are due at a fixed rate whatever the server does, and a latency counts
 * from the moment the request was due, so that a stall shows in every request that it delayed (no
 * coordinated omission).
 */
export interface LoadOptions {
  /** Loopback only. */
  readonly port: number;
  /** Requests in flight; one a connection, unless agents have connections of their own. */
  readonly in_flight: number;
  /** Connections, one of each agent: request k goes over number k modulo so many. Closed loop only. */
  readonly own_connections?: number;
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

const answer_deadline_ms = 15_000;
const opened_at_once = 64;

/** Runs one load to its end; every request that was sent is answered or counted as broken. */
export const runLoad = async (
  options: LoadOptions,
  requests: readonly Buffer[],
  connect: (events: Events, n: number) => Promise<Connection>,
): Promise<LoadResult> => {
  const { in_flight: width, own_connections, seconds, rate, whole = false } = options;
  const { wanted_status, allowed_status } = options;
  const connections: Connection[] = [];
  const idle = new Set<number>();
  const due_ms = new Float64Array(requests.length);
  const latencies_ms: number[] = [];
  const odd_statuses = new Map<number, number>();
  const odd_answers: string[] = [];
  let [next, in_flight, in_time, broken, last_ms] = [0, 0, 0, 0, 0];
  let [start_ms, end_ms] = [0, Number.POSITIVE_INFINITY];
  let [ran_dry, is_over] = [false, false];

  const send = (n: number, due: number): void => {
    const request = requests[next];
    if (request === undefined) {
      ran_dry ||= !whole;
      return;
    }
    due_ms[next] = due;
    in_flight += 1;
    connections[n]!.send(next, request);
    next += 1;
  };

  const count = (k: number, status: number, body: () => string): void => {
    in_flight -= 1;
    if (status === wanted_status) {
      latencies_ms.push(last_ms - due_ms[k]!);
      if (last_ms <= end_ms) in_time += 1;
    } else if (status !== allowed_status) {
      odd_statuses.set(status, (odd_statuses.get(status) ?? 0) + 1);
      if (odd_answers.length < 5) odd_answers.push(`  ${status} ${body().slice(0, 500)}`);
    }
  };

  const sendWhatIsDue = (now_ms: number): void => {
    for (const n of idle) {
      const due = start_ms + (next * 1_000) / (rate ?? 1);
      if (due > now_ms) return;
      idle.delete(n);
      send(n, due);
    }
  };

  /** Connection `n` may send the next request. */
  const free = (n: number, now_ms: number): void => {
    if (rate !== undefined) {
      idle.add(n);
      if (now_ms < end_ms) sendWhatIsDue(now_ms);
    } else if (now_ms < end_ms) {
      send(own_connections === undefined ? n : next % own_connections, now_ms);
    }
  };

  const connectOne = async (n: number): Promise<Connection> =>
    connect(
      {
        onAnswer(k, status, body) {
          last_ms = performance.now();
          count(k, status, body);
          free(n, last_ms);
        },
        onClose(lost, why) {
          if (is_over) return;
          // A server may close an idle connection; nothing more is sent there.
          idle.delete(n);
          broken += lost;
          in_flight -= lost;
          if (why !== '') odd_answers.push(`  ${why.slice(0, 500)}`);
        },
      },
      n,
    );

  const all = own_connections ?? width;
  while (connections.length < all) {
    const first = connections.length;
    const length = Math.min(opened_at_once, all - first);
    const some = Array.from({ length }, (_, n) => connectOne(first + n));
    connections.push(...(await Promise.all(some)));
  }
  start_ms = performance.now();
  end_ms = start_ms + seconds * 1_000;
  for (let n = 0; n < width; n += 1) free(n, start_ms);
  const isDone = (): boolean => whole && next === requests.length && in_flight === 0;
  while (performance.now() < end_ms && !isDone()) {
    if (rate !== undefined) sendWhatIsDue(performance.now());
    await delay(1);
  }
  const give_up_ms = performance.now() + answer_deadline_ms;
  while (in_flight > 0 && performance.now() < give_up_ms) await delay(5);
  is_over = true;
  for (const connection of connections) connection.close();

  const lost = broken + in_flight;
  const is_short = ran_dry || (whole && next < requests.length);
  const done = latencies_ms.length;
  return {
    ...{ sent: next, done, ...latenciesOf(latencies_ms) },
    per_second: whole ? done / ((last_ms - start_ms) / 1_000) : in_time / seconds,
    problems: [
      ...[...odd_statuses].map(([status, times]) => `${times} answers were ${status}`),
      ...(lost > 0 ? [`${lost} connections broke`] : []),
      ...(is_short ? ['the prepared requests and the time did not end together'] : []),
      ...odd_answers,
    ],
  };
};
