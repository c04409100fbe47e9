import pLimit from 'p-limit';
import { withDeadline } from '../service.js';
import type { LogSource } from './frames.js';
import { keyOf, type Publication, type TopicRef } from './frames.js';
import type { Core } from './hub.js';
import { findChannel, passes } from './session.js';

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

interface RecentOptions {
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

/**
 * The offset of the event before a given one, for topics that nobody follows yet. Looked for where
 * it costs least:
 *
 *   a channel that is live      knows its own
 *   the newest publications     are in memory
 *   the record                  the newest event of each topic before those in memory, asked for
 *                               many subscribers at once; and if that is after the offset in
 *                               question, once more for that offset alone
 *
 * It is exact as far back as a replay can look (`replay_span`); 0 says that there is none so far.
 */
type Prevs = Map<string, number>;

/** Bounds of the searches, nearest first: most topics that are asked for have just been active. */
const windows = [512, 8_192] as const;
const read_deadline_ms = 15_000;

/** What the record says of many topics, each question asked once for all who wait for it. */
export interface NewestReader {
  read(refs: readonly TopicRef[], until: number): Promise<ReadonlyMap<string, number>>;
}

const search = async (
  source: LogSource,
  span_most: number,
  { refs, until }: { readonly refs: readonly TopicRef[]; readonly until: number },
): Promise<ReadonlyMap<string, number>> => {
  const found = new Map<string, number>();
  let missing = refs;
  for (const width of [...windows, span_most]) {
    const after = Math.max(0, until - Math.min(width, span_most));
    for (const [key, offset] of await source.newest(missing, { after, until })) {
      found.set(key, offset);
    }
    missing = missing.filter((ref) => !found.has(keyOf(ref)));
    if (missing.length === 0 || after < source.oldest()) break;
  }
  return found;
};

export const makeNewestReader = (source: LogSource, span_most: number): NewestReader => {
  const gate = pLimit(1);
  interface Ask {
    readonly refs: Map<string, TopicRef>;
    readonly answer: Promise<ReadonlyMap<string, number>>;
  }
  const asks = new Map<number, Ask>();

  const ask = (until: number): Ask => {
    const refs = new Map<string, TopicRef>();
    const answer = gate(async () => {
      // Whoever asks in this turn of the event loop, or while another question is out, joins in.
      await new Promise((resolve) => setImmediate(resolve));
      asks.delete(until);
      const question = { refs: [...refs.values()], until };
      const work = search(source, span_most, question);
      return withDeadline(work, read_deadline_ms, 'Looking for the event before');
    });
    const made = { refs, answer };
    asks.set(until, made);
    return made;
  };

  return {
    async read(refs, until) {
      const { refs: asked, answer } = asks.get(until) ?? ask(until);
      for (const ref of refs) asked.set(keyOf(ref), ref);
      return answer;
    },
  };
};

/** Takes out of `missing` what the publications, newest first, say. */
const look = (
  prevs: Prevs,
  missing: Map<string, TopicRef>,
  newest_first: Iterable<Publication>,
): void => {
  for (const publication of newest_first) {
    if (missing.size === 0) return;
    for (const { topic } of publication.topics) {
      const ref = missing.get(topic);
      if (ref === undefined || !passes(ref, publication)) continue;
      prevs.set(topic, publication.offset);
      missing.delete(topic);
    }
  }
};

interface Known {
  readonly prevs: Prevs;
  readonly missing: Map<string, TopicRef>;
}

const fromMemory = (core: Core, refs: Iterable<TopicRef>, offset: number): Known => {
  const prevs: Prevs = new Map();
  const missing = new Map<string, TopicRef>();
  for (const ref of refs) {
    const channel = offset === core.head ? findChannel(core, ref) : undefined;
    if (channel === undefined) missing.set(ref.topic, ref);
    else prevs.set(ref.topic, channel.prev);
  }
  const { recent, options } = core;
  if (missing.size > 0) look(prevs, missing, recent.before(offset));
  if (recent.from() < options.source.oldest()) {
    for (const topic of missing.keys()) prevs.set(topic, 0);
    missing.clear();
  }
  return { prevs, missing };
};

/** By topic, as of an offset; null when the record has to be asked. */
export const prevsInMemory = (
  core: Core,
  refs: Iterable<TopicRef>,
  offset: number,
): Prevs | null => {
  const { prevs, missing } = fromMemory(core, refs, offset);
  return missing.size === 0 ? prevs : null;
};

/** By topic, as of an offset. Throws while the record is away. */
export const prevsAt = async (
  core: Core,
  refs: Iterable<TopicRef>,
  offset: number,
): Promise<Prevs> => {
  const { prevs, missing } = fromMemory(core, refs, offset);
  for (const until of [core.recent.from(), offset]) {
    if (missing.size === 0) break;
    const found = await core.newest.read([...missing.values()], until);
    for (const [topic, ref] of missing) {
      const newest = found.get(keyOf(ref)) ?? 0;
      if (newest > offset) continue;
      prevs.set(topic, newest);
      missing.delete(topic);
    }
  }
  return prevs;
};
