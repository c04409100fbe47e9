import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { areOver, readNextTransaction, readOffsetAt } from './snapshot-store.js';

/**
 * The moment an export stands for: what was recorded before it, and nothing else. It lies a little
 * back, because an id is made shortly before the transaction that records it, and the export waits
 * until every transaction that was under way is over. From then on nothing can be added.
 */

/** From an id to the beginning of its transaction, at most; and how far clocks may differ. */
export const settle_ms = 2_000;
/** No transaction of the service lasts longer. */
const longest_transaction_ms = 60_000;
const look_ms = 25;
const patience_ms = 8_000;

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

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** False when writers took longer than the export can wait. */
const awaitWriters = async ({ sql }: Pick<Deps, 'sql'>): Promise<boolean> => {
  const next = await readNextTransaction(sql);
  const until = performance.now() + patience_ms;
  while (!(await areOver(sql, next))) {
    if (performance.now() > until) return false;
    await pause(look_ms);
  }
  return true;
};

export const takeSnapshot = async (
  deps: Pick<Deps, 'sql' | 'clock'>,
  query: SnapshotQuery,
): Promise<Snapshot | Fault> => {
  const now = deps.clock().getTime();
  const newest = now - settle_ms;
  const snapshot = new Date(query.snapshot ?? newest);
  if (snapshot.getTime() > newest) {
    return refuseField('query.snapshot', `Must lie at least ${settle_ms / 1000} s back.`);
  }
  if (query.as_of !== undefined && Date.parse(query.as_of) > now) {
    return refuseField('query.as_of', 'Must not lie in the future.');
  }
  const as_of = new Date(Math.min(Date.parse(query.as_of ?? '') || newest, snapshot.getTime()));
  const is_fresh = now - snapshot.getTime() < longest_transaction_ms;
  if (is_fresh && !(await awaitWriters(deps))) {
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '5' } });
  }
  return { snapshot, as_of, log_offset: await readOffsetAt(deps.sql, snapshot) };
};
