export { type Link, linkAgent, unlinkAgent } from './linking.js';
export { createPrincipals, type Principals } from './live.js';
export { me_schema, readMe } from './me.js';
export { registerAgent } from './registration.js';
export { type AgentDeps, routes } from './routes.js';
export { cleanName, makeApiKey } from './rules.js';
export {
  agents_faults,
  ledger_entry_schema,
  link_key_refused,
  owned_agent_schema,
} from './schema.js';
export { type AgentRow, countOwned, findAgent, readOwned } from './store.js';
export { type Suspension, setSuspended } from './suspension-store.js';
export { ownedAgentView } from './views.js';
