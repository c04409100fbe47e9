import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { makeAnswerReader } from './answer-reader.js';
import { type Histogram, makeHistogram } from './histogram.js';

/**
 * Puts load on one HTTP server over plain sockets. Closed: every connection sends its next request
 * when the answer to the last one has come. Open: requests are due at a fixed rate whatever the
 * server does, and a latency counts from the moment the request was due, so that a stall shows in
 * every request it delayed (no coordinated omission). One request at a time on a connection.
 */
export interface LoadOptions {
  /** Loopback only. */
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second; absent for the closed loop. */
  readonly rate?: number;
  /** The wire bytes of request 0, 1, …; none is sent twice. */
  readonly requests: readonly Buffer[];
  /** The status that counts as done. */
  readonly wanted_status: number;
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

interface Connection {
  readonly socket: net.Socket;
  /** When the request in flight was due; 0 while there is none. */
  due_ms: number;
}

interface Run {
  readonly options: LoadOptions;
  readonly latencies: Histogram;
  readonly statuses: Map<number, number>;
  readonly odd_answers: string[];
  readonly idle: Connection[];
  next: number;
  in_flight: number;
  done_in_time: number;
  broken: number;
  start_ms: number;
  end_ms: number;
  ran_dry: boolean;
}

const answer_deadline_ms = 15_000;

const send = (run: Run, connection: Connection, due_ms: number): void => {
  const request = run.options.requests[run.next];
  if (request === undefined) {
    run.ran_dry = true;
    run.idle.push(connection);
    return;
  }
  run.next++;
  run.in_flight++;
  connection.due_ms = due_ms;
  connection.socket.write(request);
};

/** What a connection does when it is free: the next request, if one is due. */
const goOn = (run: Run, connection: Connection, now_ms: number): void => {
  const { rate } = run.options;
  if (now_ms >= run.end_ms) {
    run.idle.push(connection);
  } else if (rate === undefined) {
    send(run, connection, now_ms);
  } else {
    const due_ms = run.start_ms + (run.next * 1000) / rate;
    if (due_ms <= now_ms) send(run, connection, due_ms);
    else run.idle.push(connection);
  }
};

const onAnswer = (run: Run, connection: Connection, status: number, body: () => string): void => {
  const now_ms = performance.now();
  const { wanted_status } = run.options;
  run.in_flight--;
  run.statuses.set(status, (run.statuses.get(status) ?? 0) + 1);
  if (status === wanted_status) {
    run.latencies.record((now_ms - connection.due_ms) * 1000);
    if (now_ms <= run.end_ms) run.done_in_time++;
  } else if (run.odd_answers.length < 5) {
    run.odd_answers.push(`${status} ${body().slice(0, 500)}`);
  }
  connection.due_ms = 0;
  goOn(run, connection, now_ms);
};

const connect = (run: Run): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const reader = makeAnswerReader();
    const socket = net.connect({
      host: '127.0.0.1',
      port: run.options.port,
      noDelay: true,
      // One buffer for the life of the socket: nothing is allocated for an answer.
      onread: {
        buffer: Buffer.allocUnsafe(65_536),
        callback: (length, buffer) => {
          const status = reader.push(buffer.subarray(0, length) as Buffer);
          if (status !== 0) onAnswer(run, connection, status, reader.body);
          return true;
        },
      },
    });
    const connection: Connection = { socket, due_ms: 0 };
    socket.once('error', reject);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      // A server may close what is idle for long; nothing more is sent there.
      const at = run.idle.indexOf(connection);
      if (at >= 0) run.idle.splice(at, 1);
      if (connection.due_ms === 0) return;
      run.broken++;
      run.in_flight--;
    });
    socket.once('connect', () => resolve(connection));
  });

const runClosed = async (run: Run, connections: readonly Connection[]): Promise<void> => {
  for (const connection of connections) goOn(run, connection, performance.now());
  await delay(run.end_ms - performance.now());
};

const runOpen = async (run: Run, connections: readonly Connection[]): Promise<void> => {
  run.idle.push(...connections);
  for (;;) {
    const now_ms = performance.now();
    if (now_ms >= run.end_ms) return;
    const due = Math.floor(((now_ms - run.start_ms) * (run.options.rate ?? 0)) / 1000);
    while (run.next <= due && run.idle.length > 0 && !run.ran_dry) {
      goOn(run, run.idle.pop() as Connection, now_ms);
    }
    await delay(1);
  }
};

const drain = async (run: Run): Promise<void> => {
  const give_up_ms = performance.now() + answer_deadline_ms;
  while (run.in_flight > 0 && performance.now() < give_up_ms) await delay(5);
};

const resultOf = (run: Run, cpu_seconds: number): LoadResult => {
  const { latencies } = run;
  return {
    sent: run.next,
    done: latencies.count,
    done_in_time: run.done_in_time,
    per_second: run.done_in_time / run.options.seconds,
    p50_ms: latencies.quantile(0.5) / 1000,
    p99_ms: latencies.quantile(0.99) / 1000,
    max_ms: latencies.max_us / 1000,
    statuses: Object.fromEntries(run.statuses),
    odd_answers: run.odd_answers,
    broken_connections: run.broken + run.in_flight,
    ran_dry: run.ran_dry,
    cpu_seconds,
    cpu_us_per_request: (cpu_seconds * 1e6) / Math.max(1, run.next),
  };
};

/** Runs one load to its end; every request that was sent has been answered or counted as broken. */
export const runLoad = async (options: LoadOptions): Promise<LoadResult> => {
  const run: Run = {
    options,
    latencies: makeHistogram(),
    statuses: new Map(),
    odd_answers: [],
    idle: [],
    next: 0,
    in_flight: 0,
    done_in_time: 0,
    broken: 0,
    start_ms: 0,
    end_ms: 0,
    ran_dry: false,
  };
  const connections: Connection[] = [];
  for (let i = 0; i < options.connections; i++) connections.push(await connect(run));
  const cpu = process.cpuUsage();
  run.start_ms = performance.now();
  run.end_ms = run.start_ms + options.seconds * 1000;
  await (options.rate === undefined ? runClosed(run, connections) : runOpen(run, connections));
  await drain(run);
  const used = process.cpuUsage(cpu);
  for (const { socket } of connections) socket.destroy();
  return resultOf(run, (used.user + used.system) / 1e6);
};
