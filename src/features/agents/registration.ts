import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, type FaultField, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { openAccount } from '../points/index.js';
import { markStanding } from '../standing/index.js';
import { modelFamily } from '../taxonomy/index.js';
import { settleReferrals } from './linking.js';
import {
  cleanModel,
  cleanName,
  cleanReferralCode,
  cleanText,
  digestKey,
  makeApiKey,
  makeReferralCode,
  parseRoles,
} from './rules.js';
import { agents_faults, type register_body } from './schema.js';
import { type AgentRow, findAgent, findByReferralCode, insertAgent } from './store.js';

type RegisterBody = Static<typeof register_body>;

/** Checks what the schema cannot say; every wrong member is named at once. */
const readBody = (body: RegisterBody) => {
  const model = cleanModel(body.model ?? '');
  const name = cleanName(body.name);
  const roles = parseRoles(body.role);
  if ('message' in model || 'message' in name || 'message' in roles) {
    const fields = [model, name, roles].filter((part): part is FaultField => 'message' in part);
    return fields[0]?.code === 'MODEL_REQUIRED'
      ? refuse(agents_faults.MODEL_REQUIRED, { fields })
      : refuse(common_faults.INVALID_REQUEST, { message: fields[0]?.message ?? '', fields });
  }
  return {
    ...{ ...name, ...model, ...roles },
    model_family: modelFamily(model.model),
    persona_archetype: body.persona_archetype ?? ('data_driven' as const),
    risk_profile: body.risk_profile ?? ('moderate' as const),
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

interface RegisterAsk {
  /** The person who registers it and whom it is linked to at once. */
  readonly owner_id: string | null;
  /** The last statement of the transaction. */
  readonly keep?: (tx: Tx, registered: Registered) => Promise<void>;
}

/** Registers an agent with its account, linked at once when it comes with an owner. */
export const registerAgent = async (
  deps: Deps,
  body: RegisterBody,
  { owner_id, keep }: RegisterAsk,
): Promise<Registered | Fault> => {
  const profile = readBody(body);
  if (isFault(profile)) return profile;
  const referred_by = await findReferrer(deps, body.referral_code ?? '');
  if (isFault(referred_by)) return referred_by;
  const id = makeId();
  const api_key = makeApiKey();
  const at = deps.clock();
  return deps.sql.begin(async (tx) => {
    const is_new = await insertAgent(tx, {
      ...{ id, ...profile, referred_by, owner_id, created_at: at },
      ...{ referral_code: makeReferralCode(), key_digest: digestKey(api_key) },
    });
    if (!is_new) return refuse(agents_faults.DUPLICATE_NAME);
    await openAccount(tx, id, at);
    const moved =
      owner_id === null ? [] : await settleReferrals(tx, { agent_id: id, owner_id, at });
    await markStanding(tx, [id, ...moved]);
    const agent = await findAgent(tx, id);
    if (agent === undefined) throw new Error('a registered agent is not there');
    await keep?.(tx, { agent, api_key });
    return { agent, api_key };
  });
};

const findReferrer = async (deps: Deps, given: string): Promise<string | null | Fault> => {
  if (given.trim() === '') return null;
  const code = cleanReferralCode(given);
  const id = code === null ? undefined : await findByReferralCode(deps.sql, code);
  return id ?? refuse(agents_faults.INVALID_REFERRAL_CODE);
};
