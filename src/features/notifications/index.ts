export { createNotificationSweeper, notified_replies } from './events.js';
export type { NotificationRow } from './store.js';
export { insertNotices as notify, isShown, type Notice, noteTiers } from './store.js';
