import type { Socket } from 'node:net';
import { WebSocket } from 'ws';

/** Websocket frames byte by byte, to send frames that no client would send. */

export interface RawSocket {
  /** Texts of the received frames, in order. */
  readonly texts: readonly string[];
  /** The close code. 1006 without a close frame. */
  readonly closed: Promise<number>;
  write(bytes: Buffer): void;
  /** Stops reading. */
  pause(): void;
  destroy(): void;
}

const mask = Buffer.from([1, 2, 3, 4]);

export interface FrameParts {
  readonly opcode: number;
  readonly fin?: boolean;
  readonly is_masked?: boolean;
  /** Reserved bits of the first byte. */
  readonly reserved?: number;
  /** The length in the header. Default: the length of the payload. */
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

/** Connects with the handshake of `ws`, which also reads the incoming frames. */
export const openRaw = (
  port: number,
  { path = '/ws', connection = 'Upgrade' } = {},
): Promise<RawSocket> =>
  new Promise((resolve, reject) => {
    const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
      perMessageDeflate: false,
      autoPong: false,
      finishRequest(request) {
        request.setHeader('Connection', connection);
        request.end();
      },
    });
    const texts: string[] = [];
    const closed = new Promise<number>((onClosed) => ws.on('close', onClosed));
    ws.on('message', (data) => texts.push(String(data)));
    ws.on('error', reject);
    ws.on('open', () => {
      const tcp = (ws as unknown as { _socket: Socket })._socket;
      resolve({
        texts,
        closed,
        write: (bytes) => void tcp.write(bytes),
        pause: () => void tcp.pause(),
        destroy: () => void tcp.destroy(),
      });
    });
  });
