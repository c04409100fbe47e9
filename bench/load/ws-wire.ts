import { randomBytes } from 'node:crypto';

/** As much of RFC 6455 as a load generator needs: text frames out, whole frames in. */

/** Masked with zeros, so that nothing has to be done with its bytes at the time it is sent. */
export const textFrame = (text: string): Buffer => {
  const payload = Buffer.from(text);
  const { length } = payload;
  const head = length < 126 ? [0x81, 0x80 | length] : [0x81, 0xfe, length >> 8, length & 0xff];
  if (length > 65_535) throw new Error('A frame of the load is too long.');
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), payload]);
};

export const upgradeRequest = (api_key: string): string =>
  'GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n` +
  `X-API-Key: ${api_key}\r\n\r\n`;

const head_end = Buffer.from('\r\n\r\n');

export interface FrameReader {
  /** Takes what arrived; `onFrame` gets the payload of each whole frame, good until it returns. */
  push(chunk: Buffer, onFrame: (opcode: number, payload: Buffer) => void): void;
}

/** Reads the answer to the upgrade, and then the frames of a server, which are not masked. */
export const makeFrameReader = (): FrameReader => {
  let pending: Buffer | undefined;
  let is_open = false;
  return {
    push(chunk, onFrame) {
      const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
      let at = 0;
      if (!is_open) {
        const end = bytes.indexOf(head_end);
        is_open = end !== -1;
        if (is_open) at = end + 4;
        if (is_open && !bytes.toString('latin1', 0, 12).endsWith(' 101')) {
          throw new Error(bytes.toString('latin1', 0, 200));
        }
      }
      while (is_open && bytes.length - at >= 2) {
        let length = (bytes[at + 1] as number) & 0x7f;
        let start = at + 2;
        if (length === 126) {
          if (bytes.length - at < 4) break;
          length = bytes.readUInt16BE(start);
          start += 2;
        } else if (length === 127) throw new Error('An answer is far too long.');
        if (bytes.length - start < length) break;
        onFrame((bytes[at] as number) & 0x0f, bytes.subarray(start, start + length));
        at = start + length;
      }
      // The socket's buffer is used again, so what waits must be a copy.
      pending = at === bytes.length ? undefined : Buffer.from(bytes.subarray(at));
    },
  };
};
