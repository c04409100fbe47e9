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

/** Publications that may have left the list before the array is cut. */
const slack = 256;

/** `most_chars` bounds the characters of all bodies together. */
export const makeRecent = <P extends Publication>({
  most,
  most_chars,
}: {
  readonly most: number;
  readonly most_chars: number;
}): Recent<P> => {
  let list: P[] = [];
  /** Index of the oldest one that counts. */
  let start = 0;
  let chars = 0;
  let from = 0;
  let last = Number.NEGATIVE_INFINITY;
  /** Offsets follow each other without a hole, so the index of one is known. */
  const indexAfter = (offset: number): number =>
    Math.max(start, start + offset + 1 - (list[start]?.offset ?? 0));

  return {
    from: () => from,
    push(publication) {
      if (publication.offset <= last) return;
      last = publication.offset;
      list.push(publication);
      chars += publication.body.length;
      while (list.length - start > most || chars > most_chars) {
        from = (list[start] as P).offset;
        chars -= (list[start] as P).body.length;
        start += 1;
      }
      if (start < slack) return;
      list = list.slice(start);
      start = 0;
    },
    after: (offset) => list.slice(indexAfter(offset)),
    *before(offset) {
      for (let at = Math.min(indexAfter(offset), list.length) - 1; at >= start; at -= 1) {
        yield list[at] as P;
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
