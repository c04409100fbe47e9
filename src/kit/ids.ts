import * as crypto from 'node:crypto';
import { randomFillSync } from 'node:crypto';

/**
 * UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random bits. Within one process the
 * 12 bits after the version count up inside a millisecond, so ids made here sort in the order of
 * their making.
 */
const pool = Buffer.allocUnsafe(4096);
/** The same bytes as digits, which ids are made of. */
let digits = '';
let used = pool.length;
let last_ms = 0;
let counter = 0;
/** What ids of `last_ms` begin with. */
let beginning = '';

const moveTo = (ms: number): void => {
  last_ms = ms;
  const time = ms.toString(16).padStart(12, '0');
  beginning = `${time.slice(0, 8)}-${time.slice(8)}-`;
};

export const makeId = (now_ms: number = Date.now()): string => {
  if (used + 8 > pool.length) {
    randomFillSync(pool);
    digits = pool.toString('hex');
    used = 0;
  }
  if (now_ms > last_ms) {
    moveTo(now_ms);
    counter = pool.readUInt16LE(used) & 0x3ff;
  } else if (++counter > 0xfff) {
    moveTo(last_ms + 1);
    counter = 0;
  }
  const at = 2 * used;
  const variant = '89ab'.charAt(pool[used]! & 0x3);
  used += 8;
  const numbered = `${beginning}${(0x7000 | counter).toString(16)}-${variant}`;
  return `${numbered}${digits.slice(at + 1, at + 4)}-${digits.slice(at + 4, at + 16)}`;
};

const dashed = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
    '-',
  );

/** An id that sorts after another: a new one, or the next where that one is ahead of the clock. */
export const makeIdAfter = (id: string): string => {
  const made = makeId();
  if (made > id) return made;
  const next = BigInt(`0x${id.replaceAll('-', '')}`) + 1n;
  return dashed(next.toString(16).padStart(32, '0'));
};

/** The smallest id that could be made at a time. */
export const firstIdAt = (ms: number): string => {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
};

const uuid_pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const isId = (text: string): boolean => uuid_pattern.test(text);

/**
 * SHA-256 as a text, which costs a third of what it costs as a buffer: that has memory outside of
 * the heap. Node before 20.12 has only the streaming hash.
 */
export const sha256: (data: string | Uint8Array, encoding: crypto.BinaryToTextEncoding) => string =
  typeof crypto.hash === 'function'
    ? (data, encoding) => crypto.hash('sha256', data, encoding)
    : (data, encoding) => crypto.createHash('sha256').update(data).digest(encoding);
