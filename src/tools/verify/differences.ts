import { setTimeout as wait } from 'node:timers/promises';
import { findBoardDifferences } from '../../features/standing/index.js';
import type { VerifyParts } from './parts.js';
import { checkRecord } from './record-store.js';
import { checkSnapshots } from './snapshot-store.js';
import { checkStream } from './stream.js';
import { checkTallies } from './tallies.js';

const again_ms = 1_000;
const most_again = 3;

/**
 * The leaderboards in Redis against the record. They follow it within a moment, and what has not
 * arrived yet looks otherwise a second later: a difference is what keeps saying the same.
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

/**
 * Everything in which a service contradicts itself, as sentences: the record (points, predictions,
 * log, deliveries, counters) against itself, and Redis against the record. Empty: all is right. It
 * only reads, keeps at most a page of anything in memory, and may look while the log goes on;
 * `under_way_ms` says what is then no difference yet.
 */
export const findDifferences = async (parts: VerifyParts): Promise<readonly string[]> => [
  ...(await checkRecord(parts.sql, parts.under_way_ms ?? 0)),
  ...(await checkSnapshots(parts.sql)),
  ...(await checkStream(parts)),
  ...(await checkTallies(parts)),
  ...(parts.without_boards === true ? [] : await checkBoards(parts)),
];
