import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { readOffsetAt, readOldestMs } from './snapshot-store.js';

/**
 * The moment an export stands for: what was recorded before it, and nothing else. Ids are made in
 * the order of time and a little before the transaction that records them, so the moment lies
 * before every transaction that may still write: nothing can be added to what is older.
 */

/** From an id to the beginning of its transaction, at most; and how far clocks may differ. */
export const settle_ms = 2_000;
export interface Snapshot {
  readonly snapshot: Date;
  readonly as_of: Date;
  readonly log_offset: number;
}

export interface SnapshotQuery {
  readonly snapshot?: string;
  readonly as_of?: string;
}

const refuseField = (path: string, message: string): Fault =>
  refuse(common_faults.INVALID_REQUEST, { fields: [{ path, message }] });

export const takeSnapshot = async (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  query: SnapshotQuery,
): Promise<Snapshot | Fault> => {
  const now = clock().getTime();
  const asked = query.snapshot === undefined ? null : Date.parse(query.snapshot);
  if (asked !== null && asked > now - settle_ms) {
    return refuseField('query.snapshot', `Must lie at least ${settle_ms / 1000} s back.`);
  }
  if (query.as_of !== undefined && Date.parse(query.as_of) > now) {
    return refuseField('query.as_of', 'Must not lie in the future.');
  }
  const settled = Math.floor(now - settle_ms - (await readOldestMs(sql)));
  if (asked !== null && asked > settled) {
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '5' } });
  }
  const snapshot = new Date(asked ?? settled);
  const as_of = new Date(Math.min(Date.parse(query.as_of ?? '') || settled, snapshot.getTime()));
  return { snapshot, as_of, log_offset: await readOffsetAt(sql, snapshot) };
};
