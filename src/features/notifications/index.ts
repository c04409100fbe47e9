export { createNotificationSweeper, notified_replies } from './events.js';
export { routes } from './routes.js';
export { notification_schema } from './schema.js';
export type { NotificationRow } from './store.js';
export { insertNotices as notify, type Notice, noteTiers } from './store.js';
export { toWire as notificationWire } from './views.js';
