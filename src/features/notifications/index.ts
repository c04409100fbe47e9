export { createNotificationSweeper, notified_replies } from './events.js';
export { routes, toWire as notificationWire } from './routes.js';
export { notification_schema } from './schema.js';
export type { NotificationRow } from './store.js';
export { insertNotices as notify, type Notice, noteTiers } from './store.js';
