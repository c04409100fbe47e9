import { auth_routes } from './auth-routes.js';
import { linking_routes } from './linking-routes.js';
import { page_routes } from './page-routes.js';

export type { AccountDeps } from './accounts.js';
export { humans_faults } from './faults.js';
export { ensureImportOwner, import_owner_id } from './import-owner-store.js';
export { createSessions, type Sessions } from './live.js';
export { createLoginLimit, type LoginLimit } from './login-limit.js';
export { createMailer, type Letter, queueMail } from './mail/index.js';
export { bearerToken, looksLikeSession } from './rules.js';

export const routes = [...auth_routes, ...linking_routes, ...page_routes];
