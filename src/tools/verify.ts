import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../config.js';
import { findDigestDifferences, readEvents, readHead } from '../features/events/index.js';
import { packEntry, streamKey } from '../features/events/log-entry.js';
import { findBoardDifferences } from '../features/leaderboards/index.js';
import { type Call, runCommand, startCommand, writeLine } from './command.js';
import { withBoth } from './stores.js';
import { checkTallies, readAgeAfter } from './verify/consensus-store.js';
import { chunk, type VerifyParts } from './verify/parts.js';
import { checkRecord, countRecord } from './verify/record-store.js';

const looks = 4;
const again_ms = 1_000;
/**
 * Numbers change from one comparison to the next. The start of a line, with ids but without
 * numbers, identifies its subject.
 */
const subjectOf = (line: string): string =>
  line.replace(/(?<![\w-])\d+(?![\w-])/g, '').slice(0, 48);

/**
 * Returns every contradiction in the data of a service, as a sentence. It compares the record
 * (points, predictions, log and its digests, deliveries, counters, snapshots) with itself, and
 * Redis with the record. It only reads, and holds at most a page of anything in memory. The log may
 * grow meanwhile: then `under_way_ms` says which differences are too young to count. Differences
 * that exist only for a moment, because Redis lags behind or a part of the service is being
 * replaced, are gone when it looks again.
 */
export const findDifferences = async (parts: VerifyParts): Promise<readonly string[]> => {
  let found = await look(parts);
  const most = parts.under_way_ms === undefined ? 1 : looks;
  for (let n = 1; found.length > 0 && n < most; n += 1) {
    await wait(again_ms);
    const before = new Set(found.map(subjectOf));
    found = (await look(parts)).filter((line) => before.has(subjectOf(line)));
  }
  return found;
};

const look = async (parts: VerifyParts): Promise<readonly string[]> => [
  ...(await checkRecord(parts.sql, parts.under_way_ms ?? 0)),
  ...(await findDigestDifferences(parts.sql)),
  ...(await checkStream(parts)),
  ...(await checkTallies(parts)),
  ...(parts.without_boards === true
    ? []
    : await findBoardDifferences({ ...parts, now: new Date() })),
];

const offsetOf = (id: string): number => Number(id.split('-')[0]);

/** An entry of the Redis stream. Fields have the order in which they were appended. */
type RawEntry = readonly [id: string, fields: readonly string[]];

const compareEntry = (
  [id, fields]: RawEntry,
  event: Awaited<ReturnType<typeof readEvents>>[number] | undefined,
): string | null => {
  if (event === undefined) return `the stream has ${id}, but the log does not`;
  if (id !== `${event.offset}-0`) return `the stream has ${id}, but the log has ${event.offset}`;
  const [head, body] = packEntry(event);
  const wanted = ['h', head, 'b', body];
  return wanted.join('\n') === fields.join('\n') ? null : `the stream and the log differ at ${id}`;
};

/**
 * The Redis stream must equal the end of the log: same order and content, no hole, up to the head.
 */
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
    // The stream may have dropped its oldest entries since the last page, because its length is
    // limited.
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
  return [`the stream ends at ${at}, but the log ends at ${head}`];
};

const help = `Usage: prediction-forum verify

Compares everything that a running service stores twice: points with the ledger; predictions with
their events; deliveries with the log; counters, snapshots and live tallies with the predictions;
the Redis stream and the stored digests with the log. Changes nothing.

Exit code: 0 nothing differs; 1 something differs.`;

/** Work that has been under way for less time does not count as a difference yet. */
const settle_ms = 10_000;
export const runVerify = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: {},
    async work(_, __, { screen }) {
      const config = readConfig();
      const say = (line: string): void => writeLine(screen, line);
      const access = { name: 'verify', pool: 3, statement_timeout_ms: 300_000, say };
      const { found, compared } = await withBoth(config, access, async (sql, redis) => {
        const parts = { sql, redis, prefix: config.REDIS_PREFIX, under_way_ms: settle_ms };
        return { found: await findDifferences(parts), compared: await countRecord(sql) };
      });
      const is_right = found.length === 0;
      const end = is_right ? 'Nothing differs' : `\n${found.length} differences`;
      for (const line of [...found, `${end}; compared: ${compared}.`]) say(line);
      return { code: is_right ? 0 : 1, result: { differences: found, compared } };
    },
  });

await startCommand(import.meta.filename, runVerify);
