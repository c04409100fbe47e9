import { account_routes } from './account-routes.js';
import { admin_routes } from './admin-routes.js';
import { agent_routes, link_routes } from './agents-routes.js';
import { auth_routes } from './auth-routes.js';

export { type AgentDeps, me_schema, readMe } from './agents-routes.js';
export { findAgent, setSuspended } from './agents-store.js';
export { type Mail, queueMail } from './mail-store.js';
export { createMailer } from './mailer.js';
export {
  addVerifiedPerson,
  adminAddresses,
  findAgentNamed,
  findPerson,
} from './operating.js';
export { readOutbox, type ShownMail } from './outbox.js';
export { ensureImportOwner, import_owner_id } from './people-store.js';
export { createPrincipals, makeAuthenticate, type Principals } from './principals-store.js';
export { linkAgent, registerAgent, replaceAgentKey } from './registration.js';
export { cleanName, makeApiKey } from './rules.js';
export { agents_faults, ledger_entry_schema, mail_schema } from './schema.js';
export { createLoginLimit, createSessions, type LoginLimit, type Sessions } from './sessions.js';

export const routes = [
  ...agent_routes,
  ...auth_routes,
  ...account_routes,
  ...link_routes,
  ...admin_routes,
];
