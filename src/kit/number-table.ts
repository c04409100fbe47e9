/** The largest number that takes two bytes. */
const most_narrow = 65_535;
/** A long array grows by less at once, because it is what memory is spent on. */
const growthOf = (length: number): number => (length < 4_096 ? 1.5 : 1.125);

/** Below it a buffer is not worth the 4 µs of giving it back. */
const least_given_back = 4_096;

/**
 * Gives the memory of an array back that a longer one has replaced. It would be found only when V8
 * goes through all old objects, and so many bytes of them make V8 do that ten times as often: it
 * counts what was allocated outside of its heap. Who was given a buffer anew and does not keep it
 * loses it with the next collection of young objects.
 */
export const giveBack = ({ buffer }: Int32Array | Uint16Array | Float64Array): void => {
  if (buffer.byteLength < least_given_back) return;
  structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
};

/** Room for so many numbers, as wide as those. */
export const roomLike = (
  values: Int32Array | Uint16Array,
  room: number,
): Int32Array | Uint16Array =>
  values instanceof Uint16Array ? new Uint16Array(room) : new Int32Array(room);

/** Whole numbers that grow: a typed array with room at its end, and another one when it is full. */
export class Ints {
  values: Int32Array | Uint16Array;
  length = 0;

  /** `narrow`: two bytes a number, until `hold` is told of one that needs four. */
  constructor(room = 64, narrow = false) {
    this.values = narrow ? new Uint16Array(room) : new Int32Array(room);
  }

  get bytes(): number {
    return this.values.byteLength;
  }

  /** To be called before a number that may be too large for two bytes is written. */
  hold(largest: number): void {
    if (largest > most_narrow && this.values instanceof Uint16Array) {
      const narrow = this.values;
      this.values = Int32Array.from(narrow);
      giveBack(narrow);
    }
  }

  /** Makes room for `more` and counts it as used; where it begins. */
  extend(more: number): number {
    const start = this.length;
    const wanted = start + more;
    if (wanted > this.values.length) {
      const room = Math.max(wanted, Math.ceil(this.values.length * growthOf(this.values.length)));
      const { values } = this;
      this.values = roomLike(values, room);
      this.values.set(values);
      giveBack(values);
    }
    this.length = wanted;
    return start;
  }

  push(value: number): void {
    // First the room: making it may replace the array.
    const at = this.extend(1);
    this.values[at] = value;
  }
}

/**
 * Numbers dense ids 0, 1, 2 … to 53-bit identities, such as hashes. Open addressing; nothing is
 * ever taken out. The identities must be well mixed in their upper 32 bits already.
 */
export class NumberTable {
  private keys: Float64Array;
  /** Id + 1; 0 is an empty place. */
  private ids: Int32Array;
  size = 0;

  constructor(room = 128) {
    this.keys = new Float64Array(room);
    this.ids = new Int32Array(room);
  }

  /** Its id, or −1. */
  find(key: number): number {
    return this.ids[this.placeOf(key)]! - 1;
  }

  /** Its id; a number that was not there gets the next one. */
  findOrAdd(key: number): number {
    const place = this.placeOf(key);
    const known = this.ids[place]! - 1;
    if (known >= 0) return known;
    this.keys[place] = key;
    this.size += 1;
    this.ids[place] = this.size;
    if (this.size * 2 > this.keys.length) this.grow();
    return this.size - 1;
  }

  get bytes(): number {
    return this.keys.length * 12;
  }

  private placeOf(key: number): number {
    const { keys, ids } = this;
    const last = keys.length - 1;
    const upper = (key / 2_097_152) >>> 0;
    let place = (upper ^ (upper >>> 15)) & last;
    while (ids[place] !== 0 && keys[place] !== key) place = (place + 1) & last;
    return place;
  }

  private grow(): void {
    const { keys, ids } = this;
    this.keys = new Float64Array(keys.length * 2);
    this.ids = new Int32Array(keys.length * 2);
    for (let old = 0; old < keys.length; old += 1) {
      if (ids[old] === 0) continue;
      const place = this.placeOf(keys[old]!);
      this.keys[place] = keys[old]!;
      this.ids[place] = ids[old]!;
    }
    giveBack(keys);
    giveBack(ids);
  }
}
