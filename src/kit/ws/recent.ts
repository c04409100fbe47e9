import type { Publication } from './frames.js';

/**
 * The newest publications of this process, in a list bounded by count and by characters. They close
 * the seam between a replay and what is live: a replay that has come this far is finished from
 * here, within one turn of the event loop. Sockets, event streams and long polls share one list;
 * the first of them that hears of a publication adds it.
 */
export interface Recent<P extends Publication> {
  /** Every publication after this offset is in the list. */
  from(): number;
  /** Adds the next one; offsets that were added before are left out. */
  push(publication: P): void;
  /** Those after `offset`, which is not before `from()`. */
  after(offset: number): readonly P[];
  /** Those up to `offset`, the newest first. */
  before(offset: number): Iterable<P>;
  /** Empties the list: the next one comes after `offset`. */
  reset(offset: number): void;
}

export interface RecentOptions {
  readonly most: number;
  /** Characters of all bodies together. */
  readonly most_chars: number;
}

/** Publications that may have left the list before the array is cut. */
const slack = 256;

export const makeRecent = <P extends Publication>(options: RecentOptions): Recent<P> => {
  const { most, most_chars } = options;
  let list: P[] = [];
  /** Index of the oldest one that counts. */
  let start = 0;
  let chars = 0;
  let from = 0;
  let last = Number.NEGATIVE_INFINITY;

  const dropOldest = (): void => {
    const { offset, body } = list[start] as P;
    start += 1;
    chars -= body.length;
    from = offset;
  };

  return {
    from: () => from,
    push(publication) {
      if (publication.offset <= last) return;
      last = publication.offset;
      list.push(publication);
      chars += publication.body.length;
      while (list.length - start > most || chars > most_chars) dropOldest();
      if (start < slack) return;
      list = list.slice(start);
      start = 0;
    },
    after(offset) {
      // Offsets follow each other without a hole, so the index of one is known.
      const first = list[start]?.offset;
      return first === undefined ? [] : list.slice(start + Math.max(0, offset + 1 - first));
    },
    *before(offset) {
      for (let at = list.length - 1; at >= start; at -= 1) {
        const one = list[at] as P;
        if (one.offset <= offset) yield one;
      }
    },
    reset(offset) {
      list = [];
      start = 0;
      chars = 0;
      from = offset;
      last = offset;
    },
  };
};
