import type { Publication } from './frames.js';

/**
 * The ring buffer of the newest publications of a process, limited by count and by characters. It
 * joins a replay to the live stream: a replay that has reached the buffer is finished from it,
 * within one turn of the event loop. Sockets, event streams and long polls share one buffer. The
 * first of them to get a publication adds it.
 */
export type Recent<P extends Publication> = ReturnType<typeof makeRecent<P>>;

/** `max_chars` limits the characters of all bodies together. */
export const makeRecent = <P extends Publication>({
  most,
  max_chars,
}: {
  readonly most: number;
  readonly max_chars: number;
}) => {
  let list: P[] = [];
  let chars = 0;
  /** Offsets follow each other without a hole, so publication `n` has the index `n - from - 1`. */
  let from = 0;
  const indexAfter = (offset: number): number => Math.max(0, offset - from);

  return {
    /** Every publication after this offset is in the buffer. */
    from: () => from,
    /** Adds the next publication. Offsets that were added before are skipped. */
    push(publication: P): void {
      if (publication.offset <= from + list.length) return;
      list.push(publication);
      chars += publication.body.length;
      while (list.length > most || chars > max_chars) {
        const oldest = list.shift() as P;
        from = oldest.offset;
        chars -= oldest.body.length;
      }
    },
    /** Returns the publications after `offset`, which must not be before `from()`. */
    after: (offset: number): readonly P[] => list.slice(indexAfter(offset)),
    /** Returns the publications up to `offset`, the newest first. */
    before: (offset: number): readonly P[] => list.slice(0, indexAfter(offset)).reverse(),
    /** Empties the buffer. The next publication comes after `offset`. */
    reset(offset: number): void {
      list = [];
      chars = 0;
      from = offset;
    },
  };
};
