import { randomBytes } from 'node:crypto';
import net from 'node:net';
import type { Connection, Events } from './load.js';

/**
 * A minimal websocket client, cheap enough for thousands in one process. It implements only the
 * part of RFC 6455 that this load needs: it sends short frames and reads a server's frames.
 */
export interface SocketOptions {
  readonly port: number;
  readonly path: string;
  /** Number of the socket. The client address that a service sees depends on it. */
  readonly n: number;
  readonly api_key?: string;
  /** True if the payload of a frame of this length is needed. Otherwise only its length is read. */
  readonly wants: (length: number) => boolean;
  onOpen(): void;
  onFrame(length: number, payload: Buffer | undefined): void;
  onClose(why: string): void;
}

const sockets_of_an_address = 150;
/** All sockets share this buffer, because each read is processed before the next one. */
const buffer = Buffer.allocUnsafe(262_144);

export const openSocket = (options: SocketOptions): net.Socket => {
  const { port, path, n, api_key } = options;
  let greeting: string | null = '';
  let why = '';
  const readFrames = makeFrameReader(options.wants, (length, payload, opcode) => {
    if (opcode === 8) why = `closed: ${payload?.toString('latin1', 2)}`;
    else if (opcode === 1) options.onFrame(length, payload);
  });
  const readGreeting = (bytes: Buffer): void => {
    greeting += bytes.toString('latin1');
    const end = greeting!.indexOf('\r\n\r\n');
    if (end === -1) return;
    if (!greeting!.startsWith('HTTP/1.1 101')) {
      why = greeting!.slice(0, 200);
      socket.destroy();
      return;
    }
    const rest = Buffer.from(greeting!.slice(end + 4), 'latin1');
    greeting = null;
    options.onOpen();
    readFrames(rest);
  };
  const callback = (length: number): boolean => {
    const bytes = buffer.subarray(0, length);
    if (greeting === null) readFrames(bytes);
    else readGreeting(bytes);
    return true;
  };
  const onread = { buffer, callback };
  const socket = net.connect({ host: '127.0.0.1', port, noDelay: true, onread });
  const address = Math.floor(n / sockets_of_an_address);
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\n` +
      'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n` +
      `X-Forwarded-For: 10.1.${address >> 8}.${address & 255}\r\n` +
      `${api_key === undefined ? '' : `X-API-Key: ${api_key}\r\n`}\r\n`,
  );
  socket.on('error', (error) => {
    why ||= error.message;
  });
  socket.on('close', () => options.onClose(why));
  return socket;
};

/** A text frame with a zero mask, so that its bytes stay unchanged. */
export const makeFrame = (text: string): Buffer => {
  const payload = Buffer.from(text);
  const { length } = payload;
  if (length > 65_535) throw new Error('A frame of the load is too long.');
  const head = length < 126 ? [0x81, 0x80 | length] : [0x81, 0xfe, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), payload]);
};

/** Reads the frames that a server sends. */
export const makeFrameReader = (
  wants: SocketOptions['wants'],
  onFrame: (length: number, payload: Buffer | undefined, opcode: number) => void,
) => {
  let pending: Buffer | undefined;
  let skip = 0;
  return (chunk: Buffer): void => {
    let at = Math.min(skip, chunk.length);
    skip -= at;
    const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
    while (bytes.length - at >= 2) {
      const short = bytes[at + 1]! & 127;
      const start = at + (short === 127 ? 10 : short === 126 ? 4 : 2);
      if (bytes.length < start) break;
      let length = short;
      if (short === 126) length = bytes.readUInt16BE(at + 2);
      else if (short === 127) length = Number(bytes.readBigUInt64BE(at + 2));
      const end = start + length;
      const is_wanted = wants(length);
      if (is_wanted && bytes.length < end) break;
      onFrame(length, is_wanted ? bytes.subarray(start, end) : undefined, bytes[at]! & 15);
      skip = Math.max(0, end - bytes.length);
      at = Math.min(end, bytes.length);
    }
    // The incomplete frame is copied, because all sockets share one buffer.
    pending = at === bytes.length ? undefined : Buffer.from(bytes.subarray(at));
  };
};

/** Opens the socket of an agent that makes calls. The id of a call is its number. */
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
        // The first frame is the welcome, or an error.
        if (text.startsWith('{"op":"error"')) events.onClose(0, text);
        resolve(connection);
        return;
      }
      in_flight -= 1;
      events.onAnswer(Number(reply[1]), Number(reply[2]), () => text);
    };
    const socket = openSocket({
      port,
      path: '/ws',
      n,
      api_key,
      wants: () => true,
      onOpen: () => undefined,
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
