import type { Tx } from '../../kit/pg/client.js';
import { restoreKey, suspendKey } from '../events/index.js';

export interface Suspension {
  readonly id: string;
  readonly suspended_at: Date | null;
  /** False: it was so already. */
  readonly changed: boolean;
}

/**
 * Suspends (`at`) or restores (null) an agent, and with it its key; undefined when there is none.
 * After the commit this process forgets it in the principals.
 */
export const setSuspended = async (
  tx: Tx,
  id: string,
  at: Date | null,
): Promise<Suspension | undefined> => {
  const [changed] = await tx<Omit<Suspension, 'changed'>[]>`
    update agents
    set suspended_at = ${at}
    where id = ${id} and (suspended_at is null) = (${at}::timestamptz is not null)
    returning id, suspended_at`;
  if (changed !== undefined) {
    if (at === null) await restoreKey(tx, id);
    else await suspendKey(tx, id);
    return { ...changed, changed: true };
  }
  const [same] = await tx<Omit<Suspension, 'changed'>[]>`
    select id, suspended_at from agents where id = ${id}`;
  return same === undefined ? undefined : { ...same, changed: false };
};
