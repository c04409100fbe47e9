import net from 'node:net';
import type { Connection, Events } from './load.js';

/** A minimal HTTP/1.1 client over a plain socket. Node's own client is slower. */

const head_end = Buffer.from('\r\n\r\n');
const spellings = ['content-length: ', 'Content-Length: '].map((name) => Buffer.from(name));

const findLength = (bytes: Buffer, end: number): number => {
  for (const name of spellings) {
    const at = bytes.indexOf(name);
    if (at === -1 || at > end) continue;
    let length = 0;
    for (let i = at + name.length; ; i += 1) {
      const digit = (bytes[i] ?? 0) - 48;
      if (digit < 0 || digit > 9) return length;
      length = length * 10 + digit;
    }
  }
  throw new Error('An answer has no content-length.');
};

/**
 * Reads one answer at a time. Each answer must have a content-length. A more complete parser would
 * distort the measurement, because it runs on the same cores as the server.
 */
export const makeAnswerReader = () => {
  let pending: Buffer | undefined;
  let last: Buffer = head_end;
  let body_at = 0;
  return {
    /** Returns the status when an answer is complete, otherwise 0. */
    push(chunk: Buffer): number {
      const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
      const end = bytes.indexOf(head_end);
      const total = end === -1 ? Number.POSITIVE_INFINITY : end + 4 + findLength(bytes, end);
      if (bytes.length < total) {
        // Copied, because all sockets share one buffer.
        pending = Buffer.from(bytes);
        return 0;
      }
      if (bytes.length > total) throw new Error('An answer came without a request.');
      pending = undefined;
      last = bytes;
      body_at = end + 4;
      return (bytes[9]! - 48) * 100 + (bytes[10]! - 48) * 10 + bytes[11]! - 48;
    },
    /** The body of the last answer. Valid until the next answer arrives. */
    body: () => last.toString('utf8', body_at),
  };
};

/** All sockets share this buffer, because each read is processed before the next one. */
const buffer = Buffer.allocUnsafe(65_536);

/** Sends one request at a time. Further requests wait. */
export const connectHttp = (port: number, events: Events): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const reader = makeAnswerReader();
    const waiting: { readonly k: number; readonly bytes: Buffer }[] = [];
    let in_flight = -1;
    const send = (k: number, bytes: Buffer): void => {
      if (in_flight !== -1) {
        waiting.push({ k, bytes });
        return;
      }
      in_flight = k;
      socket.write(bytes);
    };
    const callback = (length: number): boolean => {
      const status = reader.push(buffer.subarray(0, length));
      if (status === 0) return true;
      const answered = in_flight;
      in_flight = -1;
      const next = waiting.shift();
      if (next !== undefined) send(next.k, next.bytes);
      events.onAnswer(answered, status, reader.body);
      return true;
    };
    const onread = { buffer, callback };
    const socket = net.connect({ host: '127.0.0.1', port, noDelay: true, onread });
    socket.on('error', reject);
    socket.once('close', () => events.onClose(waiting.length + (in_flight === -1 ? 0 : 1), ''));
    socket.once('connect', () => resolve({ send, close: () => socket.destroy() }));
  });
