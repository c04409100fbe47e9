import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { starting_points, tierOf } from '../points/index.js';
import { insertNotices } from './store.js';
import { lockTiers, readTiers, storeTiers, type TierRow } from './tiers-store.js';

const findChanged = (rows: readonly TierRow[]) =>
  rows
    .map(({ agent_id, equity, told }) => ({
      ...{ agent_id, told: told ?? first_tier, tier: tierOf(equity) },
    }))
    .filter(({ tier, told }) => tier !== told);

const first_tier = tierOf(starting_points);

/**
 * Tells agents whose tier is no longer the one they were told of, and gives their ids. To be called
 * with agents whose equity changed, after the change and in its transaction, as often as anybody
 * likes: it compares with what was told and writes both in one transaction, so that each change
 * that it sees is told once. A tier that changed and came back in between is not told. Most calls
 * change no tier, and cost one statement without a lock.
 */
export const noteTiers = async (
  tx: Tx,
  agent_ids: readonly string[],
  at: Date,
): Promise<readonly string[]> => {
  if (agent_ids.length === 0) return [];
  const found = findChanged(await readTiers(tx, agent_ids));
  if (found.length === 0) return [];
  const ids = found.map(({ agent_id }) => agent_id);
  const changed = findChanged(await lockTiers(tx, ids, first_tier));
  if (changed.length === 0) return [];
  await storeTiers(tx, changed);
  await insertNotices(
    tx,
    changed.map(({ agent_id, tier, told }) => ({
      ...{ agent_id, kind: 'tier.changed', cause: `tier:${makeId()}` },
      ...{ details: { tier, before: told }, at },
    })),
  );
  return changed.map(({ agent_id }) => agent_id);
};
