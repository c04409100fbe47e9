export { notified_replies } from './events.js';
export { routes } from './routes.js';
export { insertNotices as notify, type Notice } from './store.js';
export { createNotificationSweeper } from './sweeper.js';
export { noteTiers } from './tiers-store.js';
