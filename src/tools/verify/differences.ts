import { checkBoards } from './boards.js';
import type { VerifyParts } from './parts.js';
import { checkRecord } from './record-store.js';
import { checkSnapshots } from './snapshot-store.js';
import { checkStream } from './stream.js';
import { checkTallies } from './tallies.js';

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
