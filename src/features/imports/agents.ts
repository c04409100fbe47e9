import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { agents_faults, cleanName, registerAgent } from '../agents/index.js';
import { recordAct } from '../audit/index.js';
import { ensureImportOwner } from '../humans/index.js';
import type { AgentItem } from './schema.js';
import { findByName } from './store.js';

/**
 * Agents whose forecasts are imported. They belong to the import's own owner, so that they are
 * linked like every agent that predicts, and so that an import can never speak for an agent of
 * somebody else. Their keys work; whoever runs the import gets them once.
 */

export interface AgentOutcome {
  readonly kind: 'created' | 'exists';
  readonly agent_id: string;
  readonly api_key?: string;
}

export const importAgent = async (
  deps: Deps,
  item: AgentItem,
  admin: string,
): Promise<AgentOutcome | Fault> => {
  const clean = cleanName(item.name);
  if ('message' in clean) {
    return refuse(common_faults.INVALID_REQUEST, { message: clean.message, fields: [clean] });
  }
  const owner_id = await ensureImportOwner(deps.sql);
  const at = deps.clock();
  const [known] = await findByName(deps.sql, [clean.name_key]);
  if (known !== undefined && known.owner_id !== owner_id) {
    return refuse(agents_faults.DUPLICATE_NAME, {
      message: 'An agent that was not imported has this name; name the imported one otherwise.',
    });
  }
  if (known !== undefined) return { kind: 'exists', agent_id: known.id };
  const body = { name: item.name, model: item.model };
  const registered = await registerAgent(deps, body, {
    owner_id,
    async keep(tx, { agent }) {
      const subject = { kind: 'agent', id: agent.id };
      await recordAct(tx, { admin, act: 'agent.import', subject, at });
    },
  });
  if (isFault(registered)) return registered;
  return { kind: 'created', agent_id: registered.agent.id, api_key: registered.api_key };
};
