import type { Db, Sql } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { sha256 } from '../../kit/ids.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import type { Recent } from '../../socket/recent.js';
import { addPoint, type DigestPoint, listPoints, readPoint } from './digest-store.js';
import { readOldest } from './floor-store.js';
import type { LogEntry } from './log-entry.js';
import { readEvents, readHead } from './store.js';
import type { PublishedEvent } from './topics.js';

/**
 * The rolling digest of the log, by which a follower of everything that is public proves that it has
 * all of it, in order and word for word:
 *
 *   digest at 0   64 zeros
 *   digest at n   SHA-256, in hex, of `<digest at n-1> <n> <id> <body>` for a public event
 *                 the digest at n-1 for one that only its audience may see
 *
 * It follows from the log alone, so that every process computes the same. Postgres has it at every
 * thousand offsets; between two of them it is computed from there.
 */

/** Offsets from one stored digest to the next. */
export const digest_span = 1_000;

type Digested = Pick<LogEntry, 'offset' | 'id' | 'body' | 'audience_id'>;

const addEvent = (before: string, { offset, id, body, audience_id }: Digested): string =>
  audience_id === null ? sha256(`${before} ${offset} ${id} ${body}`, 'hex') : before;

/** The point `offset`, from an earlier one and the events between them. */
const advance = (
  { digest }: DigestPoint,
  events: readonly Digested[],
  offset: number,
): DigestPoint => ({ offset, digest: events.reduce(addEvent, digest) });

/**
 * Reads the events up to `offset`, which is at most a span away and not above the head. Null when
 * some of them are gone: retention may take them between two statements.
 */
const readOn = async (db: Db, from: DigestPoint, offset: number): Promise<DigestPoint | null> => {
  const count = offset - from.offset;
  const events = await readEvents(db, from.offset, count);
  const is_whole = events.length === count && (events.at(-1)?.offset ?? offset) === offset;
  return is_whole ? advance(from, events, offset) : null;
};

const nextSpan = (offset: number): number => (Math.floor(offset / digest_span) + 1) * digest_span;

/** Stores the digests of every thousand up to `until`, and that of `until`, which the log has. */
export const storeDigests = async (sql: Sql, until: number): Promise<void> => {
  let point = await readPoint(sql, until);
  while (point !== null && point.offset < until) {
    point = await readOn(sql, point, Math.min(nextSpan(point.offset), until));
    if (point !== null) await addPoint(sql, point);
  }
};

/** Stores the digest of a thousand when it is full. Any number of processes may do it. */
export const createDigests = ({ sql, log }: Deps): Service =>
  makeLoop({
    name: 'event digests',
    log,
    every_ms: 500,
    async turn() {
      await storeDigests(sql, nextSpan(await readHead(sql)) - digest_span);
      return 'rest';
    },
  });

/** Most spans that are read for one answer; stored digests are less than that behind. */
const most_spans = 20;

/**
 * The digest at an offset, from the record. `unknown`: the log has not come so far, or the events
 * before it are not kept. `late`: digests are not stored nearly so far yet.
 */
export const readDigest = async (
  sql: Sql,
  offset: number,
): Promise<DigestPoint | 'unknown' | 'late'> => {
  const [stored, head, oldest] = await Promise.all([
    readPoint(sql, offset),
    readHead(sql),
    readOldest(sql),
  ]);
  if (stored === null || offset > head) return 'unknown';
  if (stored.offset !== offset && stored.offset < oldest - 1) return 'unknown';
  if (offset - stored.offset > most_spans * digest_span) return 'late';
  let point: DigestPoint | null = stored;
  while (point !== null && point.offset < offset) {
    point = await readOn(sql, point, Math.min(nextSpan(point.offset), offset));
  }
  return point ?? 'unknown';
};

/**
 * The digest at the newest event that this process has followed, computed from what it has seen. It
 * begins with the record, and again where a batch does not continue the one before.
 */
export const createDigestTracker = (
  { sql, log }: Pick<Deps, 'sql' | 'log'>,
  recent: Recent<PublishedEvent>,
) => {
  let point: DigestPoint | null = null;
  const follow = (batch: readonly LogEntry[]): void => {
    if (point === null) return;
    const { offset: known } = point;
    // The record may have been ahead of this process.
    const fresh = batch.filter(({ offset }) => offset > known);
    const last = fresh.at(-1)?.offset;
    if (last === undefined) return;
    point = fresh[0]?.offset === known + 1 ? advance(point, fresh, last) : null;
  };
  const loop = makeLoop({
    name: 'digest of the head',
    log,
    every_ms: 1_000,
    async turn() {
      if (point !== null) return 'rest';
      const read = await readDigest(sql, await readHead(sql));
      if (typeof read === 'string' || read.offset < recent.from()) return 'rest';
      point = read;
      follow(recent.after(read.offset).map(({ about }) => about));
      return 'rest';
    },
  });
  return {
    ...loop,
    /** To be called before the sockets get the batch. */
    onEvents: follow,
    /** Undefined at any other offset than that of the newest event. */
    at: (offset: number): string | undefined =>
      point?.offset === offset ? point.digest : undefined,
  };
};

export type DigestTracker = ReturnType<typeof createDigestTracker>;

const most_found = 5;

/** Stored digests that the log contradicts, as sentences. It reads a span at a time. */
export const findDigestDifferences = async (sql: Sql): Promise<readonly string[]> => {
  const found: string[] = [];
  const oldest = await readOldest(sql);
  let [before] = await listPoints(sql, oldest - 1, 1);
  if (before === undefined) return [`the digests do not reach the oldest event, ${oldest}`];
  while (found.length < most_found) {
    const [stored] = await listPoints(sql, before.offset + 1, 1);
    if (stored === undefined) return found;
    const computed = await readOn(sql, before, stored.offset);
    if (computed?.digest !== stored.digest) {
      found.push(`the digest at ${stored.offset} is not that of the log after ${before.offset}`);
    }
    before = stored;
  }
  return found;
};
