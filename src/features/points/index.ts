export {
  countLedger,
  type LedgerRow,
  openAccounts,
  postEntry,
  readAccount,
  readLedger,
  type Settlement,
  settleAccounts,
} from './store.js';
