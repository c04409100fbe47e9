import { setTimeout as wait } from 'node:timers/promises';
import { packEntry, readEvents, readHead, streamKey } from '../../features/events/index.js';
import { findBoardDifferences } from '../../features/leaderboards/index.js';
import { chunk, type VerifyParts } from './parts.js';
import { checkRecord } from './record-store.js';
import { checkTallies, readAgeAfter } from './tally-store.js';

/**
 * Everything in which a service contradicts itself, as sentences: the record (points, predictions,
 * log, deliveries, counters, snapshots) against itself, and Redis against the record. Empty: all is
 * right. It only reads, keeps at most a page of anything in memory, and may look while the log goes
 * on; `under_way_ms` says what is then no difference yet.
 */
export const findDifferences = async (parts: VerifyParts): Promise<readonly string[]> => [
  ...(await checkRecord(parts.sql, parts.under_way_ms ?? 0)),
  ...(await checkStream(parts)),
  ...(await checkTallies(parts)),
  ...(parts.without_boards === true ? [] : await checkBoards(parts)),
];

const offsetOf = (id: string): number => Number(id.split('-')[0]);

/** Fields of an entry in the order in which they are appended. */
type RawEntry = readonly [id: string, fields: readonly string[]];

const compareEntry = (
  [id, fields]: RawEntry,
  event: Awaited<ReturnType<typeof readEvents>>[number] | undefined,
): string | null => {
  if (event === undefined) return `the stream has ${id}, which the log has not`;
  if (id !== `${event.offset}-0`) return `the stream has ${id} where the log has ${event.offset}`;
  const [head, body] = packEntry(event);
  const wanted = ['h', head, 'b', body];
  return wanted.join('\n') === fields.join('\n') ? null : `the stream tells ${id} otherwise`;
};

/** The Redis stream is the end of the log: same order, same words, no hole, up to the head. */
const checkStream = async (parts: VerifyParts): Promise<readonly string[]> => {
  const { sql, redis, prefix, under_way_ms = 0 } = parts;
  const key = streamKey(prefix);
  const head = await readHead(sql);
  const readFirst = async () => (await redis.xrange(key, '-', '+', 'COUNT', 1))[0];
  const first = await readFirst();
  if (first === undefined) return head === 0 ? [] : ['the stream is empty'];
  let at = offsetOf(first[0]) - 1;
  for (;;) {
    const entries = await redis.xrange(key, `(${at}-0`, '+', 'COUNT', chunk);
    if (entries.length === 0) break;
    // The stream may have lost its beginning to its limit since the page before.
    const oldest = offsetOf((await readFirst())?.[0] ?? '0-0');
    const kept = entries.filter(([id]) => offsetOf(id) >= oldest);
    at = Math.max(at, oldest - 1);
    const events = await readEvents(sql, at, kept.length);
    for (const [index, entry] of kept.entries()) {
      const problem = compareEntry(entry, events[index]);
      if (problem !== null) return [problem];
    }
    at = offsetOf(entries.at(-1)?.[0] ?? '');
  }
  const age_ms = at >= head ? null : await readAgeAfter(sql, at);
  if (age_ms === null || age_ms < under_way_ms) return [];
  return [`the stream ends at ${at} and the log at ${head}`];
};

const again_ms = 1_000;
const most_again = 3;

/**
 * The leaderboards in Redis against the record. They follow it within a moment, so a difference is
 * one that is still there a second later.
 */
const checkBoards = async (parts: VerifyParts): Promise<readonly string[]> => {
  const { sql, redis, prefix, under_way_ms = 0 } = parts;
  const look = () => findBoardDifferences({ sql, redis, prefix, now: new Date() });
  let found = await look();
  const most = under_way_ms === 0 ? 0 : most_again;
  for (let looks = 0; found.length > 0 && looks < most; looks += 1) {
    await wait(again_ms);
    const again = await look();
    found = found.filter((line) => again.includes(line));
  }
  return found;
};
