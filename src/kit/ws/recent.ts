import type { Publication } from './frames.js';

/**
 * The newest publications of this process. They close the seam between a replay and what is live:
 * a replay that has come this far is finished from here, within one turn of the event loop.
 */
export interface Recent {
  /** Every publication after this offset is here. */
  from(): number;
  push(publication: Publication): void;
  /** Those after `offset`, which is not before `from()`. */
  after(offset: number): readonly Publication[];
  /** Those up to `offset`, the newest first. */
  before(offset: number): Iterable<Publication>;
  /** Forgets everything: what comes next is after `offset`. */
  reset(offset: number): void;
}

export const makeRecent = (most: number, most_chars: number): Recent => {
  let kept: Publication[] = [];
  let from = 0;
  let chars = 0;

  /** Drops a quarter at a time, so that the cost of moving the rest is small for each. */
  const trim = (): void => {
    while (kept.length > most || (chars > most_chars && kept.length > 1)) {
      const gone = kept.splice(0, Math.ceil(kept.length / 4));
      for (const { body } of gone) chars -= body.length;
      from = (gone[gone.length - 1] as Publication).offset;
    }
  };

  return {
    from: () => from,
    push(publication) {
      kept.push(publication);
      chars += publication.body.length;
      trim();
    },
    after(offset) {
      // Offsets inside are without holes, so the place of one is known.
      const first = kept[0]?.offset;
      return first === undefined ? [] : kept.slice(Math.max(0, offset + 1 - first));
    },
    *before(offset) {
      const first = kept[0]?.offset;
      if (first === undefined) return;
      for (let at = Math.min(offset - first, kept.length - 1); at >= 0; at -= 1) {
        yield kept[at] as Publication;
      }
    },
    reset(offset) {
      kept = [];
      chars = 0;
      from = offset;
    },
  };
};
