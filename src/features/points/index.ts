export {
  countLedger,
  type LedgerRow,
  openAccount,
  postEntry,
  readAccount,
  readLedger,
  type Settlement,
  settleAccounts,
} from './store.js';
