/** Whole numbers that grow: a typed array with room at its end, and another one when it is full. */
export class Ints {
  values = new Int32Array(64);
  length = 0;

  get bytes(): number {
    return this.values.byteLength;
  }

  /** Makes room for `more` and counts it as used; where it begins. */
  extend(more: number): number {
    const start = this.length;
    this.length = start + more;
    if (this.length > this.values.length) {
      const { values } = this;
      this.values = new Int32Array(2 * this.length);
      this.values.set(values);
    }
    return start;
  }

  push(value: number): void {
    const at = this.extend(1);
    this.values[at] = value;
  }
}

/** Numbers dense ids 0, 1, 2 … to identities, such as hashes; nothing is ever taken out. */
export class NumberTable {
  private readonly ids = new Map<number, number>();

  get size(): number {
    return this.ids.size;
  }

  get bytes(): number {
    return this.ids.size * 60;
  }

  /** Its id, or −1. */
  find(key: number): number {
    return this.ids.get(key) ?? -1;
  }

  /** Its id; a number that was not there gets the next one. */
  findOrAdd(key: number): number {
    const id = this.ids.get(key) ?? this.ids.size;
    this.ids.set(key, id);
    return id;
  }
}
