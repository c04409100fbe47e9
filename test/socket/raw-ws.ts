import { connect } from 'node:net';

/** A websocket client that sends bytes as it is told, right or wrong. */

export interface RawSocket {
  /** Texts of the frames that came so far. */
  readonly texts: readonly string[];
  write(bytes: Buffer): void;
  /** Nothing more is read: what is sent piles up on the other side. */
  pause(): void;
  destroy(): void;
  /** The code of the close frame, 1006 when the connection ended without one. */
  readonly closed: Promise<number>;
}

const mask = Buffer.from([0x5a, 0x01, 0xfe, 0x33]);

export interface FrameParts {
  readonly opcode: number;
  readonly fin?: boolean;
  readonly is_masked?: boolean;
  /** Reserved bits of the first byte. */
  readonly reserved?: number;
  /** The length that the header tells; that of the payload unless given. */
  readonly said_length?: bigint;
}

/** One frame as a client sends it. */
export const makeRawFrame = (payload: string | Buffer, parts: FrameParts): Buffer => {
  const { opcode, fin = true, is_masked = true, reserved = 0 } = parts;
  const body = Buffer.from(payload);
  const length = parts.said_length ?? BigInt(body.length);
  const size = length < 126n ? 0 : length < 65_536n ? 2 : 8;
  const header = Buffer.alloc(2 + size);
  header[0] = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  header[1] = (is_masked ? 0x80 : 0) | (size === 0 ? Number(length) : size === 2 ? 126 : 127);
  if (size === 2) header.writeUInt16BE(Number(length), 2);
  if (size === 8) header.writeBigUInt64BE(length, 2);
  if (!is_masked) return Buffer.concat([header, body]);
  for (let i = 0; i < body.length; i += 1) body[i] = (body[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return Buffer.concat([header, mask, body]);
};

const handshake = (path: string, connection: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: ${connection}\r\n` +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';

/** Takes whole frames off the front; the service sends no fragments. */
const readFrames = (bytes: Buffer, onFrame: (opcode: number, payload: Buffer) => void): Buffer => {
  let rest = bytes;
  while (rest.length >= 2) {
    const short = (rest[1] ?? 0) & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (rest.length < head) return rest;
    const length =
      short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
    if (rest.length < head + length) return rest;
    onFrame((rest[0] ?? 0) & 0x0f, rest.subarray(head, head + length));
    rest = rest.subarray(head + length);
  }
  return rest;
};

/** Connects, and waits for the answer to the handshake. */
export const openRaw = (
  port: number,
  { path = '/ws', connection = 'Upgrade' } = {},
): Promise<RawSocket> =>
  new Promise((resolve, reject) => {
    const tcp = connect(port, '127.0.0.1', () => tcp.write(handshake(path, connection)));
    const texts: string[] = [];
    let rest: Buffer = Buffer.alloc(0);
    let is_open = false;
    let code = 1006;
    const closed = new Promise<number>((onClosed) => tcp.on('close', () => onClosed(code)));
    tcp.on('error', reject);
    tcp.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      const end = is_open ? 0 : rest.indexOf('\r\n\r\n') + 4;
      if (end === 3) return;
      rest = readFrames(rest.subarray(end), (opcode, payload) => {
        if (opcode === 1) texts.push(payload.toString());
        if (opcode === 8 && payload.length >= 2) code = payload.readUInt16BE(0);
      });
      if (is_open) return;
      is_open = true;
      resolve({
        texts,
        closed,
        write: (bytes) => void tcp.write(bytes),
        pause: () => void tcp.pause(),
        destroy: () => void tcp.destroy(),
      });
    });
  });
