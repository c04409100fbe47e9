import { codeAt } from '../code-at.js';

/**
 * Arrays in the binary format of Postgres, which neither side has to write or read as text: number
 * of dimensions, whether there are nulls, type of the elements, length, lowest index; then each
 * element behind its length, −1 for null. The bytes hold until the next call: the client copies
 * them into its message at once.
 */

const oids = { int8: 20, int2: 21, int4: 23, text: 25, float8: 701, uuid: 2950 } as const;

const header_bytes = 20;
const usual_bytes = 65_536;
const most_kept_bytes = 1_048_576;
let scratch = Buffer.allocUnsafe(usual_bytes);

const makeRoom = (at: number, bytes: number): void => {
  if (at + bytes <= scratch.length) return;
  const wider = Buffer.allocUnsafe(2 * (at + bytes));
  scratch.copy(wider, 0, 0, at);
  scratch = wider;
};

const begin = (values: readonly unknown[], oid: number): void => {
  if (scratch.length > most_kept_bytes) scratch = Buffer.allocUnsafe(usual_bytes);
  scratch.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  scratch.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  scratch.writeInt32BE(oid, 8);
  scratch.writeInt32BE(values.length, 12);
  scratch.writeInt32BE(1, 16);
};

const bytesUntil = (at: number, values: readonly unknown[]): Uint8Array =>
  scratch.subarray(0, values.length === 0 ? 12 : at);

export const packTexts = (values: readonly unknown[]): Uint8Array => {
  begin(values, oids.text);
  let at = header_bytes;
  const { length: count } = values;
  for (let n = 0; n < count; n += 1) {
    const value = values[n];
    const text = value === null ? '' : String(value);
    // A UTF-16 unit takes three bytes at most; room for them all spares counting them first.
    const most = 3 * text.length;
    makeRoom(at, 4 + most);
    const length = scratch.write(text, at + 4, most, 'utf8');
    scratch.writeInt32BE(value === null ? -1 : length, at);
    at += 4 + length;
  }
  return bytesUntil(at, values);
};

/** Writes one value into the scratch; false when it is not of the type. */
type Put = (value: unknown, at: number) => boolean;

/**
 * Undefined when a value is not of the type: as text, Postgres says what is wrong with it. Arrays
 * of every kind come through here (see `codeAt`), so that an iterator would be slow.
 */
const packer =
  (oid: number, width: number, put: Put) =>
  (values: readonly unknown[]): Uint8Array | undefined => {
    begin(values, oid);
    makeRoom(header_bytes, values.length * (4 + width));
    let at = header_bytes;
    const { length } = values;
    for (let n = 0; n < length; n += 1) {
      const value = values[n];
      scratch.writeInt32BE(value === null ? -1 : width, at);
      at += 4;
      if (value === null) continue;
      if (!put(value, at)) return undefined;
      at += width;
    }
    return bytesUntil(at, values);
  };

const isWithin = (value: unknown, bound: number): value is number =>
  Number.isInteger(value) && (value as number) >= -bound && (value as number) < bound;

export const packSmallints = packer(oids.int2, 2, (value, at) => {
  if (!isWithin(value, 2 ** 15)) return false;
  scratch.writeInt16BE(value, at);
  return true;
});

export const packIntegers = packer(oids.int4, 4, (value, at) => {
  if (!isWithin(value, 2 ** 31)) return false;
  scratch.writeInt32BE(value, at);
  return true;
});

export const packBigints = packer(oids.int8, 8, (value, at) => {
  if (!isWithin(value, 2 ** 53)) return false;
  scratch.writeInt32BE(Math.floor(value / 2 ** 32), at);
  scratch.writeInt32BE(value | 0, at + 4);
  return true;
});

export const packDoubles = packer(oids.float8, 8, (value, at) => {
  if (typeof value !== 'number') return false;
  scratch.writeDoubleBE(value, at);
  return true;
});

/** By character code; −1 for what is no hexadecimal digit. */
const hex_digits = Int8Array.from({ length: 128 }, (_, code) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(code).toLowerCase()),
);
const digitAt = (text: string, at: number): number => hex_digits[codeAt(text, at)] ?? -1;

const dash = 0x2d;
const isDashAt = (at: number): boolean => at === 8 || at === 13 || at === 18 || at === 23;

export const packUuids = packer(oids.uuid, 16, (value, at) => {
  if (typeof value !== 'string' || value.length !== 36) return false;
  let byte = at;
  for (let n = 0; n < 36; n += 2) {
    if (isDashAt(n)) {
      if (codeAt(value, n) !== dash) return false;
      n += 1;
    }
    const pair = (digitAt(value, n) << 4) | digitAt(value, n + 1);
    if (pair < 0) return false;
    scratch[byte] = pair;
    byte += 1;
  }
  return true;
});
