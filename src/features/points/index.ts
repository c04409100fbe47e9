export * from './rules.js';
export {
  type Account,
  countLedger,
  type Entry,
  type LedgerRow,
  openAccount,
  postEntry,
  readAccount,
  readLedger,
  type Settlement,
  settleAccounts,
} from './store.js';
