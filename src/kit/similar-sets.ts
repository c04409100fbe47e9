/**
 * Finds, among many sets, the one that is most similar to a given set: exactly, and without
 * comparing it with them all. Similar means a Jaccard similarity |x ∩ y| / |x ∪ y| of at least 3/5,
 * which is an overlap of at least ⌈3(|x| + |y|)/8⌉. The method is the prefix filter of all-pairs
 * (Bayardo, Ma, Srikant 2007) over an inverted index:
 *
 * - A similar set has between 3/5 and 5/3 of the members of `x`, and so shares at least ⌈3|x|/5⌉.
 *   Hence it has one of any |x| − ⌈3|x|/5⌉ + 1 members of `x`. Only the lists of so many are read,
 *   the shortest ones, so the members that everybody has cost nothing.
 * - A set with c of these has at most c more than the other members of `x` in common with it.
 *   Nearly everything ends here.
 * - The other sets are compared member by member.
 */

export interface SimilarSet {
  /** The number that `add` gave. */
  readonly entry: number;
  readonly overlap: number;
  readonly similarity: number;
}

/** Exact, because it is a fraction of whole numbers. */
const leastSize = (size: number): number => Math.ceil((3 * size) / 5);
/** The least members that sets of these sizes have in common when they are similar. */
export const leastOverlap = (one: number, other: number): number =>
  Math.ceil((3 * (one + other)) / 8);

const countIn = (own: ReadonlySet<number>, members: Int32Array): number => {
  let count = 0;
  for (const member of members) if (own.has(member)) count += 1;
  return count;
};

/** Bytes that a member, a place in a list and a set take, as measured. */
const bytes_each = { member: 120, place: 16, set: 250 } as const;

export class SimilarSets {
  /** Members → their places in `lists`. */
  private readonly ids = new Map<string, number>();
  /** By member: the sets that have it. */
  private readonly lists: number[][] = [];
  /** By set: the ids of its members. */
  private readonly sets: Int32Array[] = [];
  /** By set: how many members it has. */
  private readonly sizes: number[] = [];
  /** By set: the members it shares with the prefix; zero between two searches. */
  private counts = new Uint16Array(64);
  private places = 0;

  get size(): number {
    return this.sets.length;
  }

  /** About how much memory this takes. */
  get bytes(): number {
    const { member, place, set } = bytes_each;
    return this.ids.size * member + this.places * place + this.sets.length * set;
  }

  /** The most similar set, the earliest of equals; null when none reaches 3/5. */
  find(set: readonly string[]): SimilarSet | null {
    const known: number[] = [];
    for (const one of set) {
      const id = this.ids.get(one);
      if (id !== undefined) known.push(id);
    }
    return this.search(known, set.length);
  }

  /** Keeps the set; its number. Different members only. */
  add(set: readonly string[]): number {
    const entry = this.sets.length;
    const members = new Int32Array(set.length);
    for (const [n, member] of set.entries()) {
      let id = this.ids.get(member);
      if (id === undefined) {
        // A list of one takes a third of the room of one that was begun empty; most have only one.
        id = this.lists.push([entry]) - 1;
        // A copy, because a slice would keep the whole text it was cut from.
        this.ids.set(Buffer.from(member).toString(), id);
      } else this.lists[id]!.push(entry);
      members[n] = id;
    }
    this.sets.push(members);
    this.sizes.push(set.length);
    this.places += set.length;
    if (entry >= this.counts.length) this.counts = new Uint16Array(2 * entry);
    return entry;
  }

  /** `known`: the members that any set has, of a set of `size` members. */
  private search(known: readonly number[], size: number): SimilarSet | null {
    const { counts, sizes } = this;
    const lists = known.map((id) => this.lists[id]!);
    lists.sort((one, other) => one.length - other.length);
    // Unknown members have the shortest lists of all.
    const rest = Math.min(lists.length, leastSize(size) - 1);
    const prefix = lists.slice(0, lists.length - rest);
    for (const list of prefix) for (const entry of list) counts[entry]! += 1;
    const least = Math.max(1, leastSize(size) - rest);
    let own: ReadonlySet<number> | undefined;
    let best: SimilarSet | null = null;
    for (let entry = 0; entry < sizes.length; entry += 1) {
      const other = sizes[entry]!;
      if (counts[entry]! < least) continue;
      const needed = leastOverlap(size, other);
      if (counts[entry]! + rest < needed) continue;
      own ??= new Set(known);
      const overlap = countIn(own, this.sets[entry]!);
      if (overlap < needed) continue;
      const similarity = overlap / (size + other - overlap);
      if (best === null || similarity > best.similarity) best = { entry, overlap, similarity };
    }
    counts.fill(0, 0, sizes.length);
    return best;
  }
}
