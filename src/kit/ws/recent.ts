import type { Publication } from './frames.js';

/**
 * The newest publications of this process. They close the seam between a replay and what is live:
 * a replay that has come this far is finished from here, within one turn of the event loop. All
 * doors of a process share one: whichever is told of a publication first brings it in.
 *
 * Only the very newest are kept as objects. Thousands of them would each live just long enough to
 * be moved among the old objects, and make V8 look through all of those again and again; the others
 * are texts in buffers, which cost nothing to keep, and become objects when somebody asks for them.
 */
export interface Recent<P extends Publication> {
  /** Every publication after this offset is here. */
  from(): number;
  /** Takes the next one; what was taken before is left out. */
  push(publication: P): void;
  /** Those after `offset`, which is not before `from()`. */
  after(offset: number): readonly P[];
  /** Those up to `offset`, the newest first. */
  before(offset: number): Iterable<P>;
  /** Forgets everything: what comes next is after `offset`. */
  reset(offset: number): void;
}

/** How a publication becomes a text and comes back. */
export interface Packing<P extends Publication> {
  /** Without a line break. */
  pack(publication: P): string;
  unpack(offset: number, text: string): P;
}

export interface RecentOptions<P extends Publication> {
  /** Kept at most, about; and about how many characters of theirs. */
  readonly most: number;
  readonly most_chars: number;
  readonly packing: Packing<P>;
}

const packed_at_once = 64;

/** Publications whose offsets follow each other. */
interface Pack<P> {
  readonly first: number;
  readonly count: number;
  readonly bytes: Buffer;
  /** Once somebody has asked for them. */
  items: readonly P[] | null;
}

function* backwards<P extends Publication>(items: readonly P[], offset: number): Iterable<P> {
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const one = items[at] as P;
    if (one.offset <= offset) yield one;
  }
}

/** The older ones. */
const makePacks = <P extends Publication>(packing: Packing<P>) => {
  let packs: Pack<P>[] = [];
  const total = { count: 0, bytes: 0 };

  const itemsOf = (pack: Pack<P>): readonly P[] => {
    pack.items ??= pack.bytes
      .toString()
      .split('\n')
      .map((text, n) => packing.unpack(pack.first + n, text));
    return pack.items;
  };

  return {
    total,
    push(some: readonly P[]): void {
      const bytes = Buffer.from(some.map((one) => packing.pack(one)).join('\n'));
      packs.push({ first: (some[0] as P).offset, count: some.length, bytes, items: null });
      total.count += some.length;
      total.bytes += bytes.length;
    },
    /** Drops the oldest; its last offset, or null when there is none. */
    drop(): number | null {
      const gone = packs.shift();
      if (gone === undefined) return null;
      total.count -= gone.count;
      total.bytes -= gone.bytes.length;
      return gone.first + gone.count - 1;
    },
    after: (offset: number): readonly (readonly P[])[] =>
      packs.filter(({ first, count }) => first + count - 1 > offset).map(itemsOf),
    *before(offset: number): Iterable<P> {
      for (let at = packs.length - 1; at >= 0; at -= 1) {
        yield* backwards(itemsOf(packs[at] as Pack<P>), offset);
      }
    },
    clear(): void {
      packs = [];
      total.count = 0;
      total.bytes = 0;
    },
  };
};

export const makeRecent = <P extends Publication>(options: RecentOptions<P>): Recent<P> => {
  const { most, most_chars } = options;
  const older = makePacks(options.packing);
  const { total } = older;
  let newest: P[] = [];
  let from = 0;
  let last = Number.NEGATIVE_INFINITY;

  const trim = (): void => {
    while (total.count + newest.length > most || total.bytes > most_chars) {
      from = older.drop() ?? newest.shift()?.offset ?? from;
    }
  };

  return {
    from: () => from,
    push(publication) {
      if (publication.offset <= last) return;
      last = publication.offset;
      newest.push(publication);
      if (newest.length >= 2 * packed_at_once) {
        older.push(newest.slice(0, packed_at_once));
        newest = newest.slice(packed_at_once);
      }
      trim();
    },
    after(offset) {
      // Offsets inside are without holes, so the place of one is known.
      const is_new = offset + 1 >= (newest[0]?.offset ?? 0);
      const all = is_new ? newest.slice() : [...older.after(offset), newest].flat();
      const first = all[0]?.offset;
      return first === undefined ? [] : all.slice(Math.max(0, offset + 1 - first));
    },
    *before(offset) {
      yield* backwards(newest, offset);
      yield* older.before(offset);
    },
    reset(offset) {
      older.clear();
      newest = [];
      from = offset;
      last = offset;
    },
  };
};
