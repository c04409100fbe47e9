import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { makeAnswerReader } from './answer-reader.js';
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

/**
 * Puts load on one HTTP server over plain sockets. Closed: every connection sends its next request
 * when the answer to the last one has come; or, where agents have connections of their own, the
 * next agent does whose turn it is; or it is closed, and another one opened for the request. Open:
 * requests are due at a fixed rate whatever the server does, and a latency counts from the moment
 * the request was due, so that a stall shows in every request it delayed (no coordinated omission).
 * One request at a time on a connection.
 */

interface Connection {
  socket: net.Socket;
  /** When the request in flight was due; 0 while there is none. */
  due_ms: number;
}

interface Run extends Tally {
  readonly connections: Connection[];
  readonly idle: Connection[];
  /** Requests that may be sent once the connection of the agent in turn is free. */
  held_up: number;
}

const send = (run: Run, connection: Connection, due_ms: number): void => {
  const request = takeNext(run);
  if (request === undefined) {
    run.idle.push(connection);
    return;
  }
  connection.due_ms = due_ms;
  if (run.options.new_connections === true) {
    // Without waiting for the other side: tens of thousands of closed ones would hold their ports.
    connection.socket.resetAndDestroy();
    connection.socket = open(run, connection);
  }
  connection.socket.write(request);
};

/** Sends what may be sent, each request over the connection of its agent. */
const sendInTurn = (run: Run, now_ms: number): void => {
  const { connections } = run;
  while (run.held_up > 0 && now_ms < run.end_ms) {
    const connection = connections[run.next % connections.length] as Connection;
    if (connection.due_ms !== 0) return;
    run.held_up--;
    send(run, connection, now_ms);
  }
};

/** What a connection does when it is free: the next request, if one is due. */
const goOn = (run: Run, connection: Connection, now_ms: number): void => {
  const { rate, own_connections } = run.options;
  if (own_connections !== undefined) {
    run.held_up++;
    sendInTurn(run, now_ms);
  } else if (now_ms >= run.end_ms) {
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
  countAnswer(run, status, connection.due_ms, now_ms, body);
  connection.due_ms = 0;
  goOn(run, connection, now_ms);
};

/** Opens a socket for the connection; what is written meanwhile waits. */
const open = (run: Run, connection: Pick<Connection, 'due_ms'>): net.Socket => {
  const reader = makeAnswerReader();
  const socket = net.connect({
    host: '127.0.0.1',
    port: run.options.port,
    noDelay: true,
    // One buffer for the life of the socket: nothing is allocated for an answer.
    onread: {
      buffer: Buffer.allocUnsafe(run.options.new_connections === true ? 8_192 : 65_536),
      callback: (length, buffer) => {
        const status = reader.push(buffer.subarray(0, length) as Buffer);
        if (status !== 0) onAnswer(run, connection as Connection, status, reader.body);
        return true;
      },
    },
  });
  socket.on('error', () => undefined);
  return socket;
};

const connect = (run: Run): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const made = { due_ms: 0 };
    const socket = open(run, made);
    const connection: Connection = Object.assign(made, { socket });
    socket.once('error', reject);
    socket.once('close', () => {
      if (connection.socket !== socket) return;
      // A server may close what is idle for long; nothing more is sent there.
      const at = run.idle.indexOf(connection);
      if (at >= 0) run.idle.splice(at, 1);
      if (connection.due_ms === 0) return;
      run.broken++;
      run.in_flight--;
    });
    socket.once('connect', () => resolve(connection));
  });

const connectAll = async (run: Run): Promise<void> => {
  const { connections, own_connections = connections } = run.options;
  while (run.connections.length < own_connections) {
    const count = Math.min(64, own_connections - run.connections.length);
    run.connections.push(...(await Promise.all(Array.from({ length: count }, () => connect(run)))));
  }
};

const runClosed = async (run: Run): Promise<void> => {
  const { connections } = run.options;
  for (const connection of run.connections.slice(0, connections)) {
    goOn(run, connection, run.start_ms);
  }
  await waitForEnd(run);
};

const runOpen = async (run: Run): Promise<void> => {
  run.idle.push(...run.connections);
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

/** Runs one load to its end; every request that was sent has been answered or counted as broken. */
export const runLoad = async (options: LoadOptions): Promise<LoadResult> => {
  const run: Run = { ...makeTally(options), connections: [], idle: [], held_up: 0 };
  await connectAll(run);
  const result = await measure(run, () =>
    options.rate === undefined ? runClosed(run) : runOpen(run),
  );
  for (const { socket } of run.connections) socket.destroy();
  return result;
};
