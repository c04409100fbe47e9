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
const length_names = ['content-length: ', 'Content-Length: '].map((name) => Buffer.from(name));

/** The number that is written at this place, up to its first other character. */
const readNumber = (bytes: Buffer, from: number): number => {
  let number = 0;
  for (let at = from; ; at += 1) {
    const digit = (bytes[at] ?? 0) - 48;
    if (digit < 0 || digit > 9) return number;
    number = number * 10 + digit;
  }
};

const readLength = (bytes: Buffer, end: number): number => {
  for (const name of length_names) {
    const at = bytes.indexOf(name);
    if (at !== -1 && at < end) return readNumber(bytes, at + name.length);
  }
  throw new Error(`An answer has no content-length: ${bytes.toString('latin1', 0, end)}`);
};

/**
 * Reads the answers of one connection, as bytes and not as text: a generator that did more for an
 * answer would take time away from the service.
 */
export const makeAnswerReader = (onAnswer: (status: number, body: () => string) => void) => {
  let pending: Buffer | undefined;
  return (chunk: Buffer): void => {
    let bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
    pending = undefined;
    while (bytes.length > 0) {
      const end = bytes.indexOf(head_end);
      const total = end === -1 ? Number.POSITIVE_INFINITY : end + 4 + readLength(bytes, end);
      if (bytes.length < total) {
        // The buffer of the sockets is used again, so the rest is copied.
        pending = Buffer.from(bytes);
        return;
      }
      const answer = bytes;
      onAnswer(readNumber(answer, 9), () => answer.toString('utf8', end + 4, total));
      if (answer.length === total) return;
      bytes = answer.subarray(total);
    }
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
