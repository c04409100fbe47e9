import { setTimeout as wait } from 'node:timers/promises';
import { findDebaterDifferences } from '../../features/debaters/index.js';
import { findBoardDifferences } from '../../features/standing/index.js';
import type { VerifyParts } from './parts.js';

const again_ms = 1_000;
const most_again = 3;

/**
 * The leaderboards in Redis against the record. They follow it within a moment, and what has not
 * arrived yet looks otherwise a second later: a difference is what keeps saying the same.
 */
export const checkBoards = async (parts: VerifyParts): Promise<readonly string[]> => {
  const { sql, redis, prefix, under_way_ms = 0 } = parts;
  const look = async (): Promise<readonly string[]> => [
    ...(await findBoardDifferences({ sql, redis, prefix, now: new Date() })),
    ...(await findDebaterDifferences({ sql, redis, prefix })),
  ];
  let found = await look();
  const most = under_way_ms === 0 ? 0 : most_again;
  for (let looks = 0; found.length > 0 && looks < most; looks += 1) {
    await wait(again_ms);
    const again = await look();
    found = found.filter((line) => again.includes(line));
  }
  return found;
};
