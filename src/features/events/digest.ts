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
 * The rolling digest of the log. With it, a client that follows all public events can prove that it
 * has every event, in order and word for word:
 *
 *   digest at 0   64 zeros
 *   digest at n   SHA-256, in hex, of `<digest at n-1> <n> <id> <body>` for a public event
 *                 the digest at n-1 for an event that only its audience may see
 *
 * The digest depends on the log alone, so every process computes the same one. Postgres stores it
 * at every thousandth offset. Digests between two stored ones are computed from the first of them.
 */

/** Number of offsets between two stored digests. */
export const digest_span = 1_000;

type Digested = Pick<LogEntry, 'offset' | 'id' | 'body' | 'audience_id'>;

const addEvent = (before: string, { offset, id, body, audience_id }: Digested): string =>
  audience_id === null ? sha256(`${before} ${offset} ${id} ${body}`, 'hex') : before;

/** Computes the digest at `offset` from an earlier one and the events between them. */
const advance = (
  { digest }: DigestPoint,
  events: readonly Digested[],
  offset: number,
): DigestPoint => ({ offset, digest: events.reduce(addEvent, digest) });

/**
 * Reads the events up to `offset`, which is at most one span away and not above the head. Null if
 * some of them are gone, because retention may remove events between two statements.
 */
const readOn = async (db: Db, from: DigestPoint, offset: number): Promise<DigestPoint | null> => {
  const count = offset - from.offset;
  const events = await readEvents(db, from.offset, count);
  const is_whole = events.length === count && (events.at(-1)?.offset ?? offset) === offset;
  return is_whole ? advance(from, events, offset) : null;
};

const nextSpan = (offset: number): number => (Math.floor(offset / digest_span) + 1) * digest_span;

/**
 * Stores the digest at every thousandth offset up to `until`, and at `until` itself. The log must
 * have reached `until`.
 */
export const storeDigests = async (sql: Sql, until: number): Promise<void> => {
  let point = await readPoint(sql, until);
  while (point !== null && point.offset < until) {
    point = await readOn(sql, point, Math.min(nextSpan(point.offset), until));
    if (point !== null) await addPoint(sql, point);
  }
};

/**
 * Stores the digest at every thousandth offset that the log reaches. Any number of processes may
 * run this.
 */
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

/** Maximum number of spans that one answer reads. Stored digests normally lag behind by less. */
const max_spans = 20;

/**
 * Returns the digest at an offset, computed from the record. `unknown`: the log has not reached the
 * offset, or the events before it are no longer stored. `late`: the stored digests are too far
 * behind.
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
  if (offset - stored.offset > max_spans * digest_span) return 'late';
  let point: DigestPoint | null = stored;
  while (point !== null && point.offset < offset) {
    point = await readOn(sql, point, Math.min(nextSpan(point.offset), offset));
  }
  return point ?? 'unknown';
};

/**
 * Tracks the digest at the newest event that this process has followed. Tracking starts from the
 * record, and starts again if a batch does not continue the previous one.
 */
export const createDigestTracker = (
  { sql, log }: Pick<Deps, 'sql' | 'log'>,
  recent: Recent<PublishedEvent>,
) => {
  let point: DigestPoint | null = null;
  const follow = (batch: readonly LogEntry[]): void => {
    if (point === null) return;
    const { offset: known } = point;
    // The known digest comes from the record, which may have been ahead of this process.
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
    /** Call this before the sockets get the batch. */
    onEvents: follow,
    /** Returns the digest at the newest event's offset; undefined at any other offset. */
    at: (offset: number): string | undefined =>
      point?.offset === offset ? point.digest : undefined,
  };
};

export type DigestTracker = ReturnType<typeof createDigestTracker>;

const max_found = 5;

/** Returns sentences about stored digests that contradict the log. Reads one span at a time. */
export const findDigestDifferences = async (sql: Sql): Promise<readonly string[]> => {
  const found: string[] = [];
  const oldest = await readOldest(sql);
  let [before] = await listPoints(sql, oldest - 1, 1);
  if (before === undefined) return [`no stored digest covers the oldest event, ${oldest}`];
  while (found.length < max_found) {
    const [stored] = await listPoints(sql, before.offset + 1, 1);
    if (stored === undefined) return found;
    const computed = await readOn(sql, before, stored.offset);
    if (computed?.digest !== stored.digest) {
      found.push(`the digest at ${stored.offset} does not match the events after ${before.offset}`);
    }
    before = stored;
  }
  return found;
};
