import net from 'node:net';
import { openSocket } from './socket-client.js';

/** The two ways to the service that a load can take: requests over HTTP, calls over a websocket. */

export interface Connection {
  /** Sends request `k`. */
  send(k: number, bytes: Buffer): void;
  close(): void;
}

export interface Events {
  onAnswer(k: number, status: number, body: () => string): void;
  /** It closed with so many requests in flight. */
  onClose(in_flight: number, why: string): void;
}

const head_end = Buffer.from('\r\n\r\n');

/**
 * Reads the answers of one connection. They must carry a content-length: a generator that
 * understood more would take time away from the service.
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

const buffer = Buffer.allocUnsafe(262_144);

/** Answers come in the order of the requests. */
export const connectHttp = (port: number, events: Events): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const in_flight: number[] = [];
    const read = makeAnswerReader((status, body) => {
      const k = in_flight.shift();
      if (k === undefined) throw new Error('An answer came without a request.');
      events.onAnswer(k, status, body);
    });
    const callback = (length: number): boolean => {
      read(buffer.subarray(0, length));
      return true;
    };
    const onread = { buffer, callback };
    const socket = net.connect({ host: '127.0.0.1', port, noDelay: true, onread });
    socket.on('error', reject);
    socket.once('close', () => events.onClose(in_flight.length, ''));
    socket.once('connect', () => {
      resolve({
        send(k, bytes) {
          in_flight.push(k);
          socket.write(bytes);
        },
        close: () => socket.destroy(),
      });
    });
  });

/** The socket of an agent. The id of a call is its number. */
export const connectSocket = (
  port: number,
  events: Events,
  { api_key, n }: { readonly api_key: string; readonly n: number },
): Promise<Connection> =>
  new Promise((resolve) => {
    let in_flight = 0;
    const onText = (text: string): void => {
      const reply = /^\{"op":"reply","id":(\d+),.*?"status":(\d+)/s.exec(text);
      if (reply === null) {
        // The first frame is the welcome.
        if (text.startsWith('{"op":"error"')) events.onClose(0, text);
        resolve(connection);
        return;
      }
      in_flight -= 1;
      events.onAnswer(Number(reply[1]), Number(reply[2]), () => text);
    };
    const socket = openSocket({
      ...{ port, path: '/ws', n, api_key, wants: () => true, onOpen: () => undefined },
      onFrame: (_, payload) => onText(payload!.toString()),
      onClose(why) {
        events.onClose(in_flight, why);
        resolve(connection);
      },
    });
    const connection: Connection = {
      send(_, bytes) {
        in_flight += 1;
        socket.write(bytes);
      },
      close: () => socket.destroy(),
    };
  });
