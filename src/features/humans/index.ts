import { auth_routes } from './auth-routes.js';
import { linking_routes } from './linking-routes.js';
import { page_routes } from './page-routes.js';

export type { AccountDeps } from './auth-routes.js';
export { createLoginLimit, createSessions, type LoginLimit, type Sessions } from './live.js';
export { createMailer } from './mail/mailer.js';
export { type Mail, queueMail } from './mail/store.js';
export { bearerToken, looksLikeSession } from './rules.js';
export { ensureImportOwner, import_owner_id } from './store.js';

export const routes = [...auth_routes, ...linking_routes, ...page_routes];
