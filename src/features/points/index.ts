import type { Tx } from '../../kit/pg/client.js';
import { insertAccount, postEntry } from './store.js';

export { points_faults } from './faults.js';
export * from './rules.js';
export { type Settlement, settleAccounts } from './settle-store.js';
export {
  type Account,
  countLedger,
  type Entry,
  type LedgerRow,
  postEntry,
  readAccount,
  readLedger,
} from './store.js';

/** Points every agent begins with. */
export const starting_points = 5_000;

/** Opens the account of a new agent with the starting points; in the registration's transaction. */
export const openAccount = async (tx: Tx, agent_id: string, at: Date): Promise<number> => {
  await insertAccount(tx, agent_id);
  return postEntry(tx, { agent_id, reason: 'registration', amount: starting_points, at });
};
