export { createPrincipals, type Principals } from './live.js';
export { linkAgent, registerAgent, unlinkAgent } from './registration.js';
export { type AgentDeps, me_schema, ownedAgentView, readMe, routes } from './routes.js';
export { cleanName, makeApiKey } from './rules.js';
export {
  agents_faults,
  ledger_entry_schema,
  link_key_refused,
  owned_agent_schema,
} from './schema.js';
export { type AgentRow, countOwned, findAgent, readOwned, setSuspended } from './store.js';
