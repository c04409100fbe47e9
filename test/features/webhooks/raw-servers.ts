import { once } from 'node:events';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Pair } from '../../help/authority.js';
import type { Teardown } from '../../help/stores.js';

/** Servers that misbehave deliberately, byte by byte. */

export interface RawServer {
  readonly port: number;
  /** Total connections so far, and currently open ones. */
  readonly connections: number;
  readonly open: number;
  /** Number of requests so far, by path. */
  count(path: string): number;
  url(path: string): string;
}

/** How a server reacts to a request. */
export type Misbehaviour = (socket: TLSSocket) => void;

const listen = async (t: Teardown, server: Server, host: string) => {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, host);
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, count: () => connections, open: () => sockets.size };
};

const host = '127.0.0.1';

/** Speaks TLS, reads one request per connection and then reacts as the path says. */
export const startHostile = async (
  t: Teardown,
  pair: Pair,
  behaviours: Readonly<Record<string, Misbehaviour>>,
  /** Runs before anything has been read. */
  greet?: Misbehaviour,
): Promise<RawServer> => {
  const counts = new Map<string, number>();
  const server = createTlsServer(pair, (socket) => {
    socket.on('error', () => undefined);
    greet?.(socket);
    let head = '';
    const read = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      const found = /^POST (\S+) HTTP\/1\.1\r\n.*\r\n\r\n/s.exec(head);
      if (found === null) return;
      socket.off('data', read).resume();
      const path = found[1] ?? '';
      counts.set(path, (counts.get(path) ?? 0) + 1);
      behaviours[path]?.(socket);
    };
    socket.on('data', read);
  });
  const listening = await listen(t, server, host);
  return {
    port: listening.port,
    get connections() {
      return listening.count();
    },
    get open() {
      return listening.open();
    },
    count: (path) => counts.get(path) ?? 0,
    url: (path) => `https://${host}:${listening.port}${path}`,
  };
};

/** Accepts connections and runs `greet` for each. Without `greet`, it does nothing more. */
export const startMute = async (
  t: Teardown,
  greet?: (socket: Socket) => void,
): Promise<Pick<RawServer, 'port' | 'open'> & { readonly href: string }> => {
  const server = createTcpServer((socket) => {
    // Reads and drops the data. Otherwise this side would not notice that the other side closes.
    socket.resume();
    greet?.(socket);
  });
  const listening = await listen(t, server, host);
  return {
    port: listening.port,
    href: `https://${host}:${listening.port}/`,
    get open() {
      return listening.open();
    },
  };
};

/** Writes the bytes and ends the connection. */
export const say =
  (text: string | Buffer): Misbehaviour =>
  (socket) =>
    void socket.end(text);

/** The head of an answer. */
export const answer = (status: string, ...headers: readonly string[]): string =>
  [`HTTP/1.1 ${status}`, ...headers, '', ''].join('\r\n');

/** Answers without a body, and ends the connection. */
export const plain = (status: string, ...headers: readonly string[]): Misbehaviour =>
  say(answer(status, 'Content-Length: 0', ...headers));

/** Writes `head` and then `piece` endlessly, as fast as the client reads. */
export const pour =
  (head: string, piece: Buffer): Misbehaviour =>
  (socket) => {
    socket.write(head);
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
      if (!socket.destroyed) socket.once('drain', more);
    };
    more();
  };

/** Writes `head` and then one byte at a time. */
export const drip =
  (head: string, every_ms: number): Misbehaviour =>
  (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write('.'), every_ms);
    socket.once('close', () => clearInterval(timer));
  };

/** The connection below TLS. */
const rawOf = (socket: TLSSocket): Socket => (socket as unknown as { _parent: Socket })._parent;

const arrive_ms = 50;

/** Writes the text, and resets the connection when the text has arrived. */
export const resetAfter =
  (text: string): Misbehaviour =>
  (socket) => {
    socket.write(text);
    setTimeout(() => rawOf(socket).resetAndDestroy(), arrive_ms);
  };

/** Writes the text, and then bytes that are not a valid record of this TLS connection. */
export const breakTlsAfter =
  (text: string): Misbehaviour =>
  (socket) => {
    socket.write(text, () => rawOf(socket).write(Buffer.from([0x15, 3, 3, 0, 2, 2, 0x28])));
  };

/** Writes the parts one after another, and ends the connection. */
export const inSteps =
  (parts: readonly string[], every_ms: number): Misbehaviour =>
  (socket) => {
    const left = [...parts];
    const step = (): void => {
      const part = left.shift();
      if (part !== undefined && !socket.destroyed) return void socket.write(part);
      clearInterval(timer);
      socket.end();
    };
    const timer = setInterval(step, every_ms);
    step();
  };

/** Writes the text and leaves the connection open. */
export const begin =
  (text: string | Buffer): Misbehaviour =>
  (socket) =>
    void socket.write(text);

/** Writes the text and cuts the connection without ending TLS. */
export const cutAfter =
  (text: string): Misbehaviour =>
  (socket) =>
    void socket.write(text, () => socket.destroy());
