import { giveBack, Ints, roomLike } from './number-table.js';

/** The power of two that has room for so many numbers, at least 1. */
const powerFor = (count: number): number => 32 - Math.clz32(count - 1);

/** Where the numbers of one list are among those of all: every how many, and behind the first. */
export interface ListLayout {
  readonly width: number;
  readonly start: number;
  readonly length: number;
}

/**
 * Lists that grow, side by side in one array: each has a block of 1, 2, 4, 8 … numbers. A list that
 * is full moves to a block of twice the size, and the block that it leaves is for the next list of
 * that size. Blocks are told by where they begin, and by the power of two that is their size.
 */
export class Blocks extends Ints {
  /** By power: where the blocks begin that nobody has. */
  private left: Ints[] = [];
  /** How many numbers are in these. */
  private spare = 0;

  /** A block of 2^power numbers, which are whatever was there before. */
  take(power: number): number {
    const left = this.left[power];
    if (left === undefined || left.length === 0) return this.extend(1 << power);
    left.length -= 1;
    this.spare -= 1 << power;
    return left.values[left.length]!;
  }

  /** The block may be taken by somebody else. */
  leave(start: number, power: number): void {
    while (this.left.length <= power) this.left.push(new Ints(8));
    this.left[power]!.push(start);
    this.spare += 1 << power;
  }

  /** The array is nearly full, and a quarter of it is blocks that nobody has. */
  get isWorthPacking(): boolean {
    return this.spare * 4 > this.length && this.length * 16 > this.values.length * 15;
  }

  /**
   * Moves all lists together, so that nothing between them is without use. `lists` has where each
   * begins, which is put right, and how long it is.
   */
  pack(lists: Int32Array | Uint16Array, { width, start, length }: ListLayout): void {
    const before = this.values;
    this.values = roomLike(before, before.length);
    this.left = [];
    this.spare = 0;
    this.length = 0;
    for (let at = 0; at < lists.length; at += width) {
      const count = lists[at + length]!;
      if (count === 0) continue;
      const from = lists[at + start]!;
      const to = this.take(powerFor(count));
      for (let n = 0; n < count; n += 1) this.values[to + n] = before[from + n]!;
      lists[at + start] = to;
    }
    giveBack(before);
  }

  override get bytes(): number {
    return this.left.reduce((sum, { bytes }) => sum + bytes, super.bytes);
  }
}
