export { createNotificationSweeper, notified_replies } from './events.js';
export {
  deleteInbox,
  type InboxRow,
  listBetween,
  listDue,
  listOldestInbox,
  type NewItem,
  settleDue,
  tell,
} from './inbox-store.js';
export type { NotificationRow } from './store.js';
export { insertNotices as notify, isShown, type Notice, noteTiers } from './store.js';
