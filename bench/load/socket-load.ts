import { readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { makeHistogram } from './histogram.js';
import type { LoadOptions, LoadResult } from './http-load.js';
import { makeFrameReader, upgradeRequest } from './ws-wire.js';

/**
 * Puts load on the service by calls over websockets: a closed loop with so many calls in flight.
 * Every agent has its socket, open all the time, and it is the agents' turn one after the other.
 */
export interface SocketOptions {
  /** JSON file: the agents' keys. */
  readonly keys_file: string;
  /** Sockets that one source address may open. */
  readonly an_address: number;
}

interface Run {
  readonly options: LoadOptions;
  readonly sockets: net.Socket[];
  readonly due_ms: Float64Array;
  readonly statuses: Map<number, number>;
  readonly odd_answers: string[];
  readonly latencies: ReturnType<typeof makeHistogram>;
  next: number;
  in_flight: number;
  done_in_time: number;
  broken: number;
  end_ms: number;
  ran_dry: boolean;
}

const answer_deadline_ms = 15_000;
const reply_start = Buffer.from('{"op":"reply","id":');

/** Sends the next `count` calls. */
const sendNext = (run: Run, count: number, now_ms: number): void => {
  const { requests } = run.options;
  const last = Math.min(run.next + count, requests.length);
  if (last < run.next + count) run.ran_dry = true;
  for (; run.next < last; run.next++) {
    run.due_ms[run.next] = now_ms;
    run.in_flight++;
    run.sockets[run.next % run.sockets.length]?.write(requests[run.next] as Buffer);
  }
};

const readNumber = (bytes: Buffer, at: number): number => {
  let number = 0;
  for (let i = at; ; i++) {
    const digit = (bytes[i] ?? 0) - 48;
    if (digit < 0 || digit > 9) return number;
    number = number * 10 + digit;
  }
};

/** True when the frame answers a call. */
const takeAnswer = (run: Run, payload: Buffer, now_ms: number): boolean => {
  if (reply_start.compare(payload, 0, reply_start.length) !== 0) {
    const text = payload.toString();
    if (text.startsWith('{"op":"error"')) run.odd_answers.push(text.slice(0, 500));
    return false;
  }
  const id = readNumber(payload, reply_start.length);
  const status = readNumber(payload, payload.indexOf('"status":', reply_start.length) + 9);
  run.in_flight--;
  run.statuses.set(status, (run.statuses.get(status) ?? 0) + 1);
  if (status === run.options.wanted_status) {
    run.latencies.record((now_ms - (run.due_ms[id] ?? 0)) * 1000);
    if (now_ms <= run.end_ms) run.done_in_time++;
  } else if (run.odd_answers.length < 5) run.odd_answers.push(payload.toString().slice(0, 500));
  return true;
};

interface Peer {
  readonly port: number;
  readonly api_key: string;
  readonly local_address: string;
}

/** Connects and waits for the welcome. */
const connect = (run: Run, { port, api_key, local_address }: Peer): Promise<net.Socket> =>
  new Promise((resolve, reject) => {
    const reader = makeFrameReader();
    const onData = (chunk: Buffer): void => {
      const now_ms = performance.now();
      let answered = 0;
      reader.push(chunk, (opcode, payload) => {
        if (opcode === 8) run.odd_answers.push(`closed: ${payload.toString('latin1', 2)}`);
        else if (opcode === 1 && takeAnswer(run, payload, now_ms)) answered++;
        else resolve(socket);
      });
      if (answered > 0 && now_ms < run.end_ms) sendNext(run, answered, now_ms);
    };
    const socket = net.connect({
      ...{ host: '127.0.0.1', port, localAddress: local_address, noDelay: true },
      onread: {
        buffer: Buffer.allocUnsafe(16_384),
        callback: (length, buffer) => {
          onData(buffer.subarray(0, length) as Buffer);
          return true;
        },
      },
    });
    socket.once('error', reject);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      run.broken++;
    });
    socket.once('connect', () => socket.write(upgradeRequest(api_key)));
  });

const connectAll = async (run: Run, { keys_file, an_address }: SocketOptions): Promise<void> => {
  const keys = JSON.parse(readFileSync(keys_file, 'utf8')) as string[];
  const { port } = run.options;
  for (let at = 0; at < keys.length; at += 64) {
    const some = keys.slice(at, at + 64).map((api_key, i) => {
      const local_address = `127.0.1.${1 + Math.floor((at + i) / an_address)}`;
      return connect(run, { port, api_key, local_address });
    });
    run.sockets.push(...(await Promise.all(some)));
  }
};

const closeAll = async (run: Run): Promise<number> => {
  const { broken } = run;
  for (const socket of run.sockets) socket.destroy();
  while (run.broken < run.sockets.length) await delay(5);
  return broken;
};

/** Runs one load to its end; every call that was sent has been answered or counted as broken. */
export const runSocketLoad = async (
  options: LoadOptions,
  sockets: SocketOptions,
): Promise<LoadResult> => {
  const run: Run = {
    ...{ options, sockets: [], odd_answers: [], statuses: new Map() },
    due_ms: new Float64Array(options.requests.length),
    latencies: makeHistogram(),
    ...{ next: 0, in_flight: 0, done_in_time: 0, broken: 0, ran_dry: false },
    end_ms: Number.POSITIVE_INFINITY,
  };
  await connectAll(run, sockets);
  const cpu = process.cpuUsage();
  const start_ms = performance.now();
  run.end_ms = start_ms + options.seconds * 1000;
  sendNext(run, options.connections, start_ms);
  await delay(options.seconds * 1000);
  const give_up_ms = performance.now() + answer_deadline_ms;
  while (run.in_flight > 0 && performance.now() < give_up_ms) await delay(5);
  const used = process.cpuUsage(cpu);
  const cpu_seconds = (used.user + used.system) / 1e6;
  const { in_flight } = run;
  const broken = await closeAll(run);
  const { latencies, done_in_time, odd_answers, ran_dry, next } = run;
  return {
    ...{ sent: next, done: latencies.count, done_in_time, odd_answers, ran_dry, cpu_seconds },
    per_second: done_in_time / options.seconds,
    p50_ms: latencies.quantile(0.5) / 1000,
    p99_ms: latencies.quantile(0.99) / 1000,
    max_ms: latencies.max_us / 1000,
    statuses: Object.fromEntries(run.statuses),
    broken_connections: broken + in_flight,
    cpu_us_per_request: (cpu_seconds * 1e6) / Math.max(1, next),
  };
};
