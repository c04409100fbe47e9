export { readMe } from './agent-view.js';
export { countOwned, findAgent, setSuspended } from './agents-store.js';
export { addVerifiedPerson, adminAddresses, findAgentNamed, findPerson } from './operating.js';
export { ensureImportOwner, import_owner_id } from './people-store.js';
export {
  createPrincipals,
  makeAuthenticate,
  type PrincipalParts,
  type Principals,
} from './principals-store.js';
export { linkAgent, registerAgent, replaceAgentKey } from './registration.js';
export { createLoginLimit, createSessions, type LoginLimit, type Sessions } from './sessions.js';
