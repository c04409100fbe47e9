import * as crypto from 'node:crypto';

const seed1 = crypto.randomInt(2 ** 32) | 0;
const seed2 = crypto.randomInt(2 ** 32) | 0;

/**
 * A 53-bit number for a text, the same for the life of this process and for nobody else. Two texts
 * meet with a chance of 2^-53.
 */
export const hashText = (text: string): number => {
  let h1 = seed1;
  let h2 = seed2;
  const { length } = text;
  for (let at = 0; at < length; at += 1) {
    const code = text.charCodeAt(at);
    h1 = Math.imul(h1 ^ code, 0x01000193);
    h2 = Math.imul(h2 ^ (h2 >>> 15) ^ code, 0x2c1b3c6d);
  }
  return (h1 >>> 0) * 2_097_152 + (h2 >>> 11);
};

/**
 * SHA-256 as a text, which costs a third of what it costs as a buffer: that has memory outside of
 * the heap. Node before 20.12 has only the streaming hash.
 */
export const sha256: (data: string | Uint8Array, encoding: crypto.BinaryToTextEncoding) => string =
  typeof crypto.hash === 'function'
    ? (data, encoding) => crypto.hash('sha256', data, encoding)
    : (data, encoding) => crypto.createHash('sha256').update(data).digest(encoding);
