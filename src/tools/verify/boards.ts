import { setTimeout as wait } from 'node:timers/promises';
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
