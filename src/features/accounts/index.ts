import { routes as agents_routes } from './agent-routes.js';
import { auth_routes } from './auth-routes.js';
import { linking_routes } from './linking-routes.js';
import { page_routes } from './page-routes.js';

export { type AgentDeps, me_schema, ownedAgentView, readMe } from './agent-routes.js';
export { cleanName, makeApiKey } from './agent-rules.js';
export {
  agents_faults,
  ledger_entry_schema,
  link_key_refused,
  owned_agent_schema,
} from './agent-schema.js';
export { type AgentRow, countOwned, findAgent, readOwned, setSuspended } from './agent-store.js';
export type { AccountDeps } from './auth-routes.js';
export { bearerToken, looksLikeSession } from './human-rules.js';
export { ensureImportOwner, import_owner_id } from './human-store.js';
export { type Mail, queueMail } from './mail-store.js';
export { createMailer } from './mailer.js';
export { createPrincipals, type Principals } from './principals.js';
export { linkAgent, registerAgent, unlinkAgent } from './registration.js';
export { createLoginLimit, createSessions, type LoginLimit, type Sessions } from './sessions.js';

export const routes = [...agents_routes, ...auth_routes, ...linking_routes, ...page_routes];
