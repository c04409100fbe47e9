import { randomBytes } from 'node:crypto';

/** As much of RFC 6455 as a subscriber needs: short frames out, text frames in. */

/** A masked text frame of at most 64 KiB. */
export const makeTextFrame = (text: string): Buffer => {
  const payload = Buffer.from(text);
  const mask = randomBytes(4);
  const length = payload.length;
  const head =
    length < 126
      ? Buffer.from([0x81, 0x80 | length])
      : Buffer.from([0x81, 0xfe, length >> 8, length]);
  for (let i = 0; i < length; i += 1) payload[i]! ^= mask[i & 3]!;
  return Buffer.concat([head, mask, payload]);
};

export interface FrameReader {
  /** Takes the answer to the handshake out of the first bytes; true once it is complete. */
  open(bytes: Buffer, opened: () => void): boolean;
  /** The first `length` bytes of a buffer that is used again afterwards. */
  read(buffer: Buffer, length: number): void;
}

export interface FrameOptions {
  /** Each data frame, by the length of its payload. */
  readonly onFrame: (length: number) => void;
  readonly onText: (text: string) => void;
  /** Whether the text of a frame of this length is looked at. */
  readonly wants_text: (length: number) => boolean;
}

export const makeFrameReader = ({ onFrame, onText, wants_text }: FrameOptions): FrameReader => {
  const head = Buffer.alloc(10);
  let head_length = 0;
  let left = 0;
  /** Parts of a text that came in several reads; null for a frame that is only counted. */
  let parts: Buffer[] | null = null;
  let greeting = '';
  let from = 0;

  const headNeeds = (): number => {
    if (head_length < 2) return 2;
    const short = head[1]! & 127;
    return short === 127 ? 10 : short === 126 ? 4 : 2;
  };
  const payloadLength = (): number => {
    const short = head[1]! & 127;
    if (short === 127) return Number(head.readBigUInt64BE(2));
    return short === 126 ? head.readUInt16BE(2) : short;
  };

  const end = (): void => {
    if (parts !== null) onText(Buffer.concat(parts).toString('utf8'));
    parts = null;
  };

  return {
    open(bytes, opened) {
      greeting += bytes.toString('latin1');
      const ends = greeting.indexOf('\r\n\r\n');
      if (ends < 0) return false;
      if (!greeting.startsWith('HTTP/1.1 101')) throw new Error(greeting.slice(0, 200));
      from = bytes.length - (greeting.length - ends - 4);
      greeting = '';
      opened();
      return true;
    },
    read(buffer, length) {
      let at = from;
      from = 0;
      while (at < length) {
        if (left > 0) {
          const some = Math.min(left, length - at);
          // The buffer is used again, so what is kept is copied.
          if (parts !== null) parts.push(Buffer.from(buffer.subarray(at, at + some)));
          at += some;
          left -= some;
          if (left === 0) end();
          continue;
        }
        head[head_length] = buffer[at]!;
        head_length += 1;
        at += 1;
        if (head_length < headNeeds()) continue;
        left = payloadLength();
        head_length = 0;
        const is_text = (head[0]! & 15) === 1;
        if (is_text) onFrame(left);
        parts = is_text && wants_text(left) ? [] : null;
        if (left === 0) end();
      }
    },
  };
};
