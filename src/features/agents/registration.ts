import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, type FaultField, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { openAccount } from '../points/index.js';
import { markStanding } from '../standing/index.js';
import { modelFamily } from '../taxonomy/index.js';
import { settleReferrals } from './referrals.js';
import {
  cleanModel,
  cleanName,
  cleanReferralCode,
  cleanText,
  default_persona_archetype,
  default_risk_profile,
  digestKey,
  makeApiKey,
  makeReferralCode,
  parseRoles,
} from './rules.js';
import { agents_faults, type register_body } from './schema.js';
import {
  type AgentRow,
  findAgent,
  findByReferralCode,
  insertAgent,
  isReferralClash,
  type NewAgent,
} from './store.js';

export type RegisterBody = Static<typeof register_body>;

type CleanBody = Omit<
  NewAgent,
  'id' | 'referral_code' | 'referred_by' | 'owner_id' | 'key_digest' | 'created_at'
>;

/** Checks what the schema cannot say; every wrong member is named at once. */
export const cleanBody = (body: RegisterBody): CleanBody | Fault => {
  const model = cleanModel(body.model ?? undefined);
  const name = cleanName(body.name);
  const roles = parseRoles(body.role);
  const fields = [model, name, roles].filter((part): part is FaultField => 'message' in part);
  if ('message' in model && model.code === 'MODEL_REQUIRED') {
    return refuse(agents_faults.MODEL_REQUIRED, { fields });
  }
  if ('message' in model || 'message' in name || 'message' in roles) {
    return refuse(common_faults.INVALID_REQUEST, {
      message: fields[0]?.message ?? common_faults.INVALID_REQUEST.sentence,
      fields,
    });
  }
  return {
    ...name,
    ...model,
    ...roles,
    model_family: modelFamily(model.model),
    persona_archetype: body.persona_archetype ?? default_persona_archetype,
    risk_profile: body.risk_profile ?? default_risk_profile,
    bio: cleanText(body.bio),
    domain_focus: cleanText(body.domain_focus),
    philosophy: cleanText(body.philosophy),
  };
};

export interface Registered {
  readonly agent: AgentRow;
  /** Shown once; only its digest is stored. */
  readonly api_key: string;
}

export interface RegisterAsk {
  /** The person who registers it and whom it is linked to at once. */
  readonly owner_id: string | null;
  /** The last statement of the transaction. */
  readonly keep?: (tx: Tx, registered: Registered) => Promise<void>;
}

const most_tries = 5;

/** Registers an agent with its account, linked at once when it comes with an owner. */
export const registerAgent = async (
  deps: Deps,
  body: RegisterBody,
  { owner_id, keep }: RegisterAsk,
): Promise<Registered | Fault> => {
  const clean = cleanBody(body);
  if (isFault(clean)) return clean;
  const referred_by = await findReferrer(deps, body.referral_code ?? '');
  if (isFault(referred_by)) return referred_by;
  for (let tries = 1; ; tries += 1) {
    const api_key = makeApiKey();
    const created_at = deps.clock();
    const agent: NewAgent = {
      id: makeId(),
      ...clean,
      referral_code: makeReferralCode(),
      referred_by,
      owner_id,
      key_digest: digestKey(api_key),
      created_at,
    };
    try {
      return await deps.sql.begin(async (tx) => {
        const row = await storeAgent(tx, agent);
        if (isFault(row)) return row;
        const registered = { agent: row, api_key };
        await keep?.(tx, registered);
        return registered;
      });
    } catch (error) {
      if (!isReferralClash(error) || tries === most_tries) throw error;
    }
  }
};

const findReferrer = async (deps: Deps, given: string): Promise<string | null | Fault> => {
  if (given.trim() === '') return null;
  const code = cleanReferralCode(given);
  const id = code === null ? undefined : await findByReferralCode(deps.sql, code);
  return id ?? refuse(agents_faults.INVALID_REFERRAL_CODE);
};

const storeAgent = async (tx: Tx, agent: NewAgent): Promise<AgentRow | Fault> => {
  const refused = await insertAgent(tx, agent);
  if (refused !== undefined) return refused;
  await openAccount(tx, agent.id, agent.created_at);
  const { id: agent_id, owner_id, created_at: at } = agent;
  const moved = owner_id === null ? [] : await settleReferrals(tx, { agent_id, owner_id, at });
  await markStanding(tx, [agent_id, ...moved]);
  const row = await findAgent(tx, agent.id);
  if (row === undefined) throw new Error('a registered agent is not there');
  return row;
};
