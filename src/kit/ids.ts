import * as crypto from 'node:crypto';

let last_ms = 0;
let counter = 0;

/**
 * Makes a UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random bits. In the 12 bits
 * after the version, one process counts up within a millisecond. So ids made here sort in the order
 * in which they were made.
 */
export const makeId = (now_ms: number = Date.now()): string => {
  const random = crypto.randomUUID();
  if (now_ms > last_ms) {
    last_ms = now_ms;
    counter = Number.parseInt(random.slice(0, 3), 16) & 0x3ff;
  } else if (++counter > 0xfff) {
    last_ms += 1;
    counter = 0;
  }
  const time = last_ms.toString(16).padStart(12, '0');
  const numbered = (0x7000 | counter).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${numbered}${random.slice(18)}`;
};

const dashed = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
    '-',
  );

/** Makes an id that sorts after `id`: a new one, or `id` plus one if `id` is ahead of the clock. */
export const makeIdAfter = (id: string): string => {
  const made = makeId();
  if (made > id) return made;
  const next = BigInt(`0x${id.replaceAll('-', '')}`) + 1n;
  return dashed(next.toString(16).padStart(32, '0'));
};

/** Returns the smallest id that can be made at the time `ms`. */
export const firstIdAt = (ms: number): string => {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
};

const uuid_pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const isId = (text: string): boolean => uuid_pattern.test(text);

/**
 * Returns SHA-256 as text. A buffer would cost three times as much, because it uses memory outside
 * the heap. Node before 20.12 has only the streaming hash.
 */
export const sha256: (data: string | Uint8Array, encoding: crypto.BinaryToTextEncoding) => string =
  typeof crypto.hash === 'function'
    ? (data, encoding) => crypto.hash('sha256', data, encoding)
    : (data, encoding) => crypto.createHash('sha256').update(data).digest(encoding);
