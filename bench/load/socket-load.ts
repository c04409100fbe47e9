import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type KeyOptions, readKeys } from './keys.js';
import {
  countAnswer,
  type LoadOptions,
  type LoadResult,
  makeTally,
  measure,
  type Tally,
  takeNext,
  waitForEnd,
} from './tally.js';
import { makeFrameReader, upgradeRequest } from './ws-wire.js';

/**
 * Puts load on the service by calls over websockets: a closed loop with so many calls in flight.
 * Every agent has its socket, open all the time, and it is the agents' turn one after the other.
 */
export interface SocketOptions extends KeyOptions {
  /** Sockets that one source address may open. */
  readonly an_address: number;
}

interface Run extends Tally {
  readonly sockets: net.Socket[];
  readonly due_ms: Float64Array;
}

const reply_start = Buffer.from('{"op":"reply","id":');

/** Sends the next `count` calls. */
const sendNext = (run: Run, count: number, now_ms: number): void => {
  for (let i = 0; i < count; i++) {
    const k = run.next;
    const request = takeNext(run);
    if (request === undefined) return;
    run.due_ms[k] = now_ms;
    run.sockets[k % run.sockets.length]?.write(request);
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
  countAnswer(run, status, run.due_ms[id] ?? 0, now_ms, () => payload.toString());
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

const connectAll = async (run: Run, options: SocketOptions): Promise<void> => {
  const keys = readKeys(options);
  const { port } = run.options;
  for (let at = 0; at < keys.length; at += 64) {
    const some = keys.slice(at, at + 64).map((api_key, i) => {
      const local_address = `127.0.1.${1 + Math.floor((at + i) / options.an_address)}`;
      return connect(run, { port, api_key, local_address });
    });
    run.sockets.push(...(await Promise.all(some)));
  }
};

const closeAll = async ({ sockets }: Run, closed: () => number): Promise<void> => {
  for (const socket of sockets) socket.destroy();
  while (closed() < sockets.length) await delay(5);
};

/** Runs one load to its end; every call that was sent has been answered or counted as broken. */
export const runSocketLoad = async (
  options: LoadOptions,
  sockets: SocketOptions,
): Promise<LoadResult> => {
  const due_ms = new Float64Array(options.requests.length);
  const run: Run = { ...makeTally(options), sockets: [], due_ms };
  await connectAll(run, sockets);
  const result = await measure(run, () => {
    sendNext(run, options.connections, run.start_ms);
    return waitForEnd(run);
  });
  await closeAll(run, () => run.broken);
  return result;
};
