export { linkAgent, unlinkAgent } from './linking.js';
export { createPrincipals, type Principals } from './live.js';
export { registerAgent } from './registration.js';
export { type AgentDeps, routes } from './routes.js';
export { cleanName, makeApiKey } from './rules.js';
export {
  agents_faults,
  ledger_entry_schema,
  link_key_refused,
  owned_agent_schema,
} from './schema.js';
export { type AgentRow, countOwned, findAgent, readOwned, setSuspended } from './store.js';
export { me_schema, ownedAgentView, readMe } from './views.js';
