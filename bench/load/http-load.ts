import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type LoadOptions, type LoadResult, Tally } from './tally.js';

/**
 * Load on one HTTP server over plain sockets. Closed loop: so many requests are in flight, and each
 * answer sends the next one. Open loop: requests are due at a fixed rate whatever the server does,
 * and a latency counts from the moment the request was due, so that a stall shows in every request
 * that it delayed (no coordinated omission).
 */
export interface HttpOptions extends LoadOptions {
  /** Connections, one of each agent: request k goes over number k modulo so many. Closed loop only. */
  readonly own_connections?: number;
}

interface Connection {
  readonly socket: net.Socket;
  /** When the requests in flight were due, the oldest first. */
  readonly due_ms: number[];
}

const head_end = Buffer.from('\r\n\r\n');

/**
 * Reads the answers of one connection; `onAnswer` gets the status of each. They must carry a
 * content-length: a generator that understood more would take time away from the service.
 */
export const makeAnswerReader = (onAnswer: (status: number, body: () => string) => void) => {
  let pending: Buffer | undefined;
  return (chunk: Buffer): void => {
    let bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
    for (;;) {
      const end = bytes.indexOf(head_end);
      if (end === -1) break;
      const head = bytes.toString('latin1', 0, end);
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      if (length === undefined) throw new Error(`An answer has no content-length: ${head}`);
      const total = end + 4 + Number(length);
      if (bytes.length < total) break;
      const answer = bytes;
      onAnswer(Number(head.slice(9, 12)), () => answer.toString('utf8', end + 4, total));
      bytes = bytes.subarray(total);
    }
    // The buffer of the sockets is used again, so the rest is copied.
    pending = bytes.length === 0 ? undefined : Buffer.from(bytes);
  };
};

/** Runs one load to its end; every request that was sent is answered or counted as broken. */
export const runHttpLoad = async (
  options: HttpOptions,
  requests: readonly Buffer[],
): Promise<LoadResult> => {
  const { port, in_flight, rate, own_connections } = options;
  const tally = new Tally(options, requests);
  const connections: Connection[] = [];
  const idle: Connection[] = [];
  const buffer = Buffer.allocUnsafe(262_144);

  const send = (connection: Connection, due_ms: number): void => {
    const request = tally.take();
    if (request === undefined) return;
    connection.due_ms.push(due_ms);
    connection.socket.write(request);
  };

  const sendNext = (free: Connection, now_ms: number): void => {
    if (rate !== undefined) {
      idle.push(free);
    } else if (now_ms < tally.end_ms) {
      const is_own = own_connections !== undefined;
      send(is_own ? connections[tally.next % own_connections]! : free, now_ms);
    }
  };

  const connect = (): Promise<Connection> =>
    new Promise((resolve, reject) => {
      const read = makeAnswerReader((status, body) => {
        const now_ms = performance.now();
        const due = connection.due_ms.shift();
        if (due === undefined) throw new Error('An answer came without a request.');
        tally.count(status, due, now_ms, body);
        sendNext(connection, now_ms);
      });
      const onread = {
        buffer,
        callback: (length: number) => {
          read(buffer.subarray(0, length));
          return true;
        },
      };
      const socket = net.connect({ host: '127.0.0.1', port, noDelay: true, onread });
      const connection: Connection = { socket, due_ms: [] };
      socket.on('error', reject);
      socket.once('connect', () => resolve(connection));
      socket.once('close', () => {
        // A server may close an idle connection; nothing more is sent there.
        if (idle.includes(connection)) idle.splice(idle.indexOf(connection), 1);
        tally.broken += connection.due_ms.length;
        tally.in_flight -= connection.due_ms.length;
      });
    });

  const runOpen = async (due_each_ms: number): Promise<void> => {
    idle.push(...connections);
    for (let now_ms = tally.start_ms; now_ms < tally.end_ms; now_ms = performance.now()) {
      for (;;) {
        const due_ms = tally.start_ms + tally.next * due_each_ms;
        if (due_ms > now_ms || idle.length === 0 || tally.next === requests.length) break;
        send(idle.pop()!, due_ms);
      }
      await delay(1);
    }
  };

  while (connections.length < (own_connections ?? in_flight)) {
    const missing = (own_connections ?? in_flight) - connections.length;
    const some = Array.from({ length: Math.min(64, missing) }, connect);
    connections.push(...(await Promise.all(some)));
  }
  const result = await tally.measure(() => {
    if (rate !== undefined) return runOpen(1_000 / rate);
    for (const connection of connections.slice(0, in_flight)) sendNext(connection, tally.start_ms);
  });
  for (const { socket } of connections) socket.destroy();
  return result;
};
