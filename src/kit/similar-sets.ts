import { Blocks } from './blocks.js';
import { Ints, NumberTable } from './number-table.js';
import { leastOverlap, needsOf, prefixOf } from './overlap.js';

/**
 * Finds, among many sets, the one that is most similar to a given set: exactly, and without looking
 * at them all. Similar means a Jaccard similarity |x ∩ y| / |x ∪ y| of at least 3/5, which is an
 * overlap of at least ⌈3(|x| + |y|)/8⌉. The method is the prefix filter of all-pairs and PPJoin
 * (Bayardo, Ma, Srikant 2007; Xiao, Wang, Lin, Yu 2008):
 *
 * - All members are in one order, rare ones first. Two similar sets share a member among the first
 *   |x| − ⌈3|x|/5⌉ + 1 of each, the prefixes. Only prefixes are in the inverted index, and only the
 *   lists of the prefix of `x` are read, so the members that everybody has cost nothing.
 * - A similar set has between 3/5 and 5/3 of the members.
 * - c members in both prefixes allow an overlap of at most c + max(|x| − p, |y| − q), where p and q
 *   are the lengths of the prefixes: of the two prefixes one ends first in the order, and what the
 *   other set has of it lies within the other prefix too. Nearly everything ends here.
 * - What is left is compared member by member.
 *
 * The order must not change for sets that are compared, yet frequencies do. So the sets are in
 * segments, each with the order that held when it was begun (members unknown then are its rarest),
 * and move on when there is a better one.
 * The order decides about speed only, never about what is found.
 */

/** With so many sets a new segment, with better knowledge of frequencies, is begun. */
const segment_ends = [64, 2_048, Number.POSITIVE_INFINITY] as const;
/** Sets that move to the new segment with each one that is added, until the old one is empty. */
const moved_at_once = 4;

interface Segment {
  /** The first set that was added to it; earlier ones move here. */
  readonly begins: number;
  readonly ends: number;
  smallest: number;
  largest: number;
  /**
   * Side by side, because they are needed together and mostly not in the processor's cache: of each
   * member its place in the order, where its list begins in `pool`, and how long that is.
   */
  readonly lists: Ints;
  /** Lists of sets. */
  readonly pool: Blocks;
}

/** Numbers a member in `lists`, and which is which. */
const list_width = 3;
const list_start = 1;
const list_length = 2;
const list_layout = { width: list_width, start: list_start, length: list_length } as const;
/** Of a member that was unknown when the segment was begun: before all others, the latest first. */
const placeOfUnknown = (id: number): number => -1 - id;

export interface SimilarSet {
  /** The number that `add` gave. */
  readonly entry: number;
  readonly overlap: number;
  readonly similarity: number;
}

interface Search {
  readonly size: number;
  readonly except: number;
  readonly best: SimilarSet | null;
}

/**
 * What one search needs, once for all sets of sets: nobody waits between two steps of a search, and
 * what is used all the time stays near the processor.
 */
const scratch = {
  /** Whose members `ids` holds, and of which set of it. */
  owner: null as SimilarSets | null,
  set: null as readonly number[] | null,
  /** The members, those of the prefix first, and the place in the order of each. */
  ids: new Int32Array(256),
  places: new Int32Array(256),
  /** By set: zero between two searches. */
  counts: new Uint16Array(64),
  /** The sets that may be similar, and the count of each. */
  touched: new Int32Array(64),
  touched_counts: new Uint16Array(64),
  /** By member: the number of the last search whose set has it. */
  marks: new Int32Array(256),
  mark: 0,
  /** Of no meaning: what `countVisits` reads must go somewhere. */
  fetched: 0,
};

/**
 * Counts the sets of one list: four at a time, so that the processor need not wait for one count to
 * go to the next. A function of its own, because V8 makes a fifth more of it so.
 */
const countEach = (
  counts: Uint16Array,
  sets: Int32Array | Uint16Array,
  start: number,
  end: number,
): void => {
  let place = start;
  for (; place < end - 3; place += 4) {
    const one = sets[place]!;
    const two = sets[place + 1]!;
    const three = sets[place + 2]!;
    const four = sets[place + 3]!;
    counts[one]! += 1;
    counts[two]! += 1;
    counts[three]! += 1;
    counts[four]! += 1;
  }
  for (; place < end; place += 1) counts[sets[place]!]! += 1;
};

const last_mark = 2 ** 31 - 1;

/** Room for a set of so many members. */
const makeRoom = (size: number): void => {
  if (size <= scratch.ids.length) return;
  scratch.ids = new Int32Array(2 * size);
  scratch.places = new Int32Array(2 * size);
};

/** Brings the `wanted` first ones in the order of so many members to the front (Hoare 1961). */
const selectFirst = (wanted: number, size: number): void => {
  const { ids, places } = scratch;
  let low = 0;
  let high = size - 1;
  while (low < high) {
    const pivot = places[(low + high) >>> 1]!;
    let left = low;
    let right = high;
    while (left <= right) {
      while (places[left]! < pivot) left += 1;
      while (places[right]! > pivot) right -= 1;
      if (left > right) break;
      const id = ids[left]!;
      ids[left] = ids[right]!;
      ids[right] = id;
      const place = places[left]!;
      places[left] = places[right]!;
      places[right] = place;
      left += 1;
      right -= 1;
    }
    // What lies between the two is the pivot.
    if (wanted <= right + 1) high = right;
    else if (wanted > left) low = left;
    else return;
  }
};

export class SimilarSets {
  private readonly members = new NumberTable();
  private readonly offsets = new Ints();
  /** 0 for a set that was taken out. */
  private readonly sizes = new Ints();
  private readonly pool = new Ints(1_024, true);
  private segments: Segment[] = [this.beginSegment(0)];
  private moved = 0;

  get size(): number {
    return this.sizes.length;
  }

  /** About how much memory this takes. */
  get bytes(): number {
    let bytes = this.members.bytes + this.pool.bytes + this.offsets.bytes + this.sizes.bytes;
    for (const { lists, pool } of this.segments) bytes += lists.bytes + pool.bytes;
    return bytes;
  }

  /** The most similar set, the earliest of equals; null when none reaches 3/5. */
  find(set: readonly number[]): SimilarSet | null {
    if (set.length === 0) return null;
    this.prepare(set);
    let best: SimilarSet | null = null;
    for (const segment of this.segments) {
      this.selectPrefix(segment, set.length);
      best = this.findIn(segment, { size: set.length, except: -1, best });
    }
    return best;
  }

  /** The set most similar to one that is kept, itself aside. */
  findLike(entry: number): SimilarSet | null {
    const size = this.loadIds(entry);
    let best: SimilarSet | null = null;
    for (const segment of size === 0 ? [] : this.segments) {
      this.selectPrefix(segment, size);
      best = this.findIn(segment, { size, except: entry, best });
    }
    return best;
  }

  /** Keeps the set; its number. Different members only. */
  add(set: readonly number[]): number {
    const entry = this.sizes.length;
    const has_order = scratch.owner === this && scratch.set === set;
    const is_new_segment = this.turnSegment(entry);
    if (!has_order) this.prepare(set);
    const segment = this.newest();
    if (!has_order || is_new_segment) this.selectPrefix(segment, set.length);
    scratch.owner = null;
    this.pool.hold(this.members.size);
    const offset = this.pool.extend(set.length);
    const { values: pool } = this.pool;
    const { ids } = scratch;
    for (let i = 0; i < set.length; i += 1) pool[offset + i] = ids[i]!;
    this.offsets.push(offset);
    this.sizes.push(set.length);
    this.addToLists(segment, entry, set.length);
    if (entry >= scratch.counts.length) {
      scratch.counts = new Uint16Array(2 * scratch.counts.length);
      scratch.touched = new Int32Array(scratch.counts.length);
      scratch.touched_counts = new Uint16Array(scratch.counts.length);
    }
    this.moveSome();
    return entry;
  }

  /** The set is not found any more. */
  remove(entry: number): void {
    this.sizes.values[entry] = 0;
  }

  /** The order: by frequency, of equals the member known latest first (a counting sort). */
  private beginSegment(begins: number): Segment {
    const known = this.members.size;
    const frequency = new Int32Array(known);
    const { values: kept } = this.pool;
    for (let at = 0; at < this.pool.length; at += 1) frequency[kept[at]!]! += 1;
    // By frequency, which is at most the number of sets: the next place in the order.
    const next = new Int32Array(begins + 2);
    for (let id = 0; id < known; id += 1) next[frequency[id]! + 1]! += 1;
    for (let count = 1; count < next.length; count += 1) next[count]! += next[count - 1]!;
    const lists = new Ints();
    lists.extend(list_width * known);
    for (let id = known - 1; id >= 0; id -= 1) {
      const count = frequency[id]!;
      lists.values[list_width * id] = next[count]!;
      next[count]! += 1;
    }
    const ends = segment_ends.find((end) => begins < end) ?? Number.POSITIVE_INFINITY;
    const pool = new Blocks(1_024, true);
    return { begins, ends, smallest: 65_535, largest: 0, lists, pool };
  }

  private newest(): Segment {
    return this.segments[this.segments.length - 1]!;
  }

  private turnSegment(entry: number): boolean {
    if (entry < this.newest().ends) return false;
    this.segments.push(this.beginSegment(entry));
    this.moved = 0;
    return true;
  }

  /** A few sets from the old segment to the new one; meanwhile they are found in both. */
  private moveSome(): void {
    if (this.segments.length === 1) return;
    const segment = this.newest();
    const end = Math.min(this.moved + moved_at_once, segment.begins);
    for (; this.moved < end; this.moved += 1) {
      const size = this.loadIds(this.moved);
      if (size === 0) continue;
      this.selectPrefix(segment, size);
      this.addToLists(segment, this.moved, size);
    }
    if (this.moved === segment.begins) this.segments = [segment];
  }

  /** Brings the members of a kept set back; how many there are. */
  private loadIds(entry: number): number {
    const size = this.sizes.values[entry]!;
    const offset = this.offsets.values[entry]!;
    makeRoom(size);
    scratch.ids.set(this.pool.values.subarray(offset, offset + size));
    scratch.owner = null;
    return size;
  }

  /** Numbers the members of the set. */
  private prepare(set: readonly number[]): void {
    makeRoom(set.length);
    const { members } = this;
    const { ids } = scratch;
    for (let i = 0; i < set.length; i += 1) ids[i] = members.findOrAdd(set[i]!);
    scratch.owner = this;
    scratch.set = set;
  }

  /** To the front of `ids`: the members of the prefix in the order of the segment. */
  private selectPrefix({ lists }: Segment, size: number): void {
    const { ids, places } = scratch;
    const { values, length } = lists;
    for (let i = 0; i < size; i += 1) {
      const id = ids[i]!;
      const at = list_width * id;
      places[i] = at < length ? values[at]! : placeOfUnknown(id);
    }
    if (size > 0) selectFirst(prefixOf(size), size);
  }

  private addToLists(segment: Segment, entry: number, size: number): void {
    if (size === 0) return;
    const { lists, pool } = segment;
    segment.smallest = Math.min(segment.smallest, size);
    segment.largest = Math.max(segment.largest, size);
    const known = lists.length / list_width;
    lists.extend(list_width * (this.members.size - known));
    const { values } = lists;
    for (let id = known; id < this.members.size; id += 1) {
      values[list_width * id] = placeOfUnknown(id);
    }
    pool.hold(entry);
    if (pool.isWorthPacking) pool.pack(values.subarray(0, lists.length), list_layout);
    const end = prefixOf(size);
    const { ids } = scratch;
    for (let i = 0; i < end; i += 1) {
      const at = list_width * ids[i]!;
      const length = values[at + list_length]!;
      if (length === 0) values[at + list_start] = pool.take(0);
      else if ((length & (length - 1)) === 0) {
        // It has room for a power of two, and is full.
        const power = 31 - Math.clz32(length);
        const start = pool.take(power + 1);
        const old = values[at + list_start]!;
        pool.values.copyWithin(start, old, old + length);
        pool.leave(old, power);
        values[at + list_start] = start;
      }
      pool.values[values[at + list_start]! + length] = entry;
      values[at + list_length] = length + 1;
    }
  }

  private findIn(segment: Segment, search: Search): SimilarSet | null {
    const prefix = prefixOf(search.size);
    const visits = this.countVisits(segment, prefix);
    if (visits === 0) return search.best;
    const least = this.leastNeed(segment, search.size);
    const found =
      2 * visits > this.sizes.length
        ? this.countMany(segment, prefix, least)
        : this.countFew(segment, prefix, least);
    const { touched, touched_counts } = scratch;
    const { values: sizes } = this.sizes;
    const needed = needsOf(search.size);
    let { best } = search;
    let is_marked = false;
    for (let i = 0; i < found; i += 1) {
      const entry = touched[i]!;
      const size = sizes[entry]!;
      const count = touched_counts[i]!;
      if (size >= needed.length || count < needed[size]! || entry === search.except) continue;
      if (!is_marked) this.markMembers(search.size);
      is_marked = true;
      best = this.better(best, entry, search.size);
    }
    return best;
  }

  /**
   * How many sets the lists of the prefix name. The lists lie anywhere in memory: two places of
   * each are read here, so that what must be fetched is fetched all at once, not list after list.
   */
  private countVisits({ lists, pool }: Segment, prefix: number): number {
    const { values, length } = lists;
    const { values: sets } = pool;
    const { ids } = scratch;
    let visits = 0;
    let fetched = 0;
    for (let i = 0; i < prefix; i += 1) {
      const at = list_width * ids[i]!;
      if (at >= length) continue;
      const start = values[at + list_start]!;
      const named = values[at + list_length]!;
      visits += named;
      fetched |= sets[start]! | sets[start + (named >>> 1)]!;
    }
    scratch.fetched = fetched;
    return visits;
  }

  /**
   * Counts, by set, the members its prefix has in common with ours. `touched` are those with at
   * least so many; how many that are.
   */
  private countFew({ lists, pool }: Segment, prefix: number, least: number): number {
    const { counts, touched, touched_counts, ids } = scratch;
    const { values, length } = lists;
    const { values: sets } = pool;
    let met = 0;
    for (let i = 0; i < prefix; i += 1) {
      const at = list_width * ids[i]!;
      if (at >= length) continue;
      const start = values[at + list_start]!;
      const end = start + values[at + list_length]!;
      for (let place = start; place < end; place += 1) {
        const entry = sets[place]!;
        const count = counts[entry]!;
        if (count === 0) {
          touched[met] = entry;
          met += 1;
        }
        counts[entry] = count + 1;
      }
    }
    let found = 0;
    for (let i = 0; i < met; i += 1) {
      const entry = touched[i]!;
      const count = counts[entry]!;
      counts[entry] = 0;
      if (count < least) continue;
      touched[found] = entry;
      touched_counts[found] = count;
      found += 1;
    }
    return found;
  }

  /** The same where most sets are met: the counts of all are looked through afterwards. */
  private countMany({ ends, lists, pool }: Segment, prefix: number, least: number): number {
    const { counts, touched, touched_counts, ids } = scratch;
    const { values, length } = lists;
    const { values: sets } = pool;
    for (let i = 0; i < prefix; i += 1) {
      const at = list_width * ids[i]!;
      if (at >= length) continue;
      const start = values[at + list_start]!;
      const end = start + values[at + list_length]!;
      countEach(counts, sets, start, end);
    }
    const end = Math.min(ends, this.sizes.length);
    let found = 0;
    for (let entry = 0; entry < end; entry += 1) {
      const count = counts[entry]!;
      if (count < least) continue;
      touched[found] = entry;
      touched_counts[found] = count;
      found += 1;
    }
    counts.fill(0, 0, end);
    return found;
  }

  /** The least that any size in the segment needs; at least 1. */
  private leastNeed({ smallest, largest }: Segment, size: number): number {
    const needed = needsOf(size);
    let least = 65_535;
    const last = Math.min(largest, needed.length - 1);
    for (let other = smallest; other <= last; other += 1) least = Math.min(least, needed[other]!);
    return least;
  }

  private markMembers(size: number): void {
    if (scratch.marks.length < this.members.size || scratch.mark === last_mark) {
      scratch.marks = new Int32Array(2 * this.members.size);
      scratch.mark = 0;
    }
    scratch.mark += 1;
    const { ids, marks, mark } = scratch;
    for (let i = 0; i < size; i += 1) marks[ids[i]!] = mark;
  }

  private better(best: SimilarSet | null, entry: number, size: number): SimilarSet | null {
    const { marks, mark } = scratch;
    const { values } = this.pool;
    const start = this.offsets.values[entry]!;
    const other = this.sizes.values[entry]!;
    let overlap = 0;
    for (let at = start; at < start + other; at += 1) {
      if (marks[values[at]!] === mark) overlap += 1;
    }
    if (overlap < leastOverlap(size, other)) return best;
    const similarity = overlap / (size + other - overlap);
    const is_better =
      best === null ||
      similarity > best.similarity ||
      (similarity === best.similarity && entry < best.entry);
    return is_better ? { entry, overlap, similarity } : best;
  }
}
