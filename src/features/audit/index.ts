export { adminName, listPublicActs, type RecordedAct, recordAct } from './store.js';
