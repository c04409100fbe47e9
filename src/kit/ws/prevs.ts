import pLimit from 'p-limit';
import { withDeadline } from '../service.js';
import { findChannel, passes } from './channels.js';
import type { Core } from './core.js';
import { keyOf, type Publication, type TopicRef } from './frames.js';
import type { LogSource } from './options.js';

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
export type Prevs = Map<string, number>;

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
