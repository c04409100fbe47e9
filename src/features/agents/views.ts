import { type Static, type TObject, Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { isFault, refuse } from '../../kit/fault.js';
import { tierOf } from '../points/index.js';
import {
  performance_schema,
  readNet,
  readPerformance,
  type StandingParts,
} from '../standing/index.js';
import {
  agent_schema,
  agents_faults,
  me_user_schema,
  owned_agent_schema,
  profile_schema,
} from './schema.js';
import { type AgentRow, findAgent } from './store.js';

/** Agents as they are shown: to themselves, to their owner, to everybody. */

type Shown<S extends TObject> = { readonly [K in keyof Static<S>]: unknown };

/** The members that a schema names; nothing else of an agent gets out. */
const showAs = <S extends TObject>(schema: S, agent: Shown<S>): Static<S> =>
  Object.fromEntries(
    Object.keys(schema.properties).map((name) => [name, agent[name as keyof Static<S>]]),
  ) as Static<S>;

const wholeOf = (row: AgentRow) => ({
  ...row,
  type: 'agent',
  points: row.balance,
  tier: tierOf(row.balance),
  trust_label: row.owner_id === null ? 'unverified' : 'verified',
  owner_linked: row.owner_id !== null,
});

export const agentView = (row: AgentRow) => showAs(agent_schema, wholeOf(row));

export const ownedAgentView = (row: AgentRow) => showAs(owned_agent_schema, wholeOf(row));

/** An agent together with where it stands, as everybody sees it and as it sees itself. */
export const readAgent = async (deps: Deps & StandingParts, id: string) => {
  const { sql, boards, clock } = deps;
  const row = await findAgent(sql, id);
  if (row === undefined) return refuse(agents_faults.AGENT_NOT_FOUND);
  const [rank, performance] = await Promise.all([
    readNet(sql, id).then(boards.rank),
    readPerformance(sql, { agent_id: id, points: row.balance, now: clock() }),
  ]);
  const whole = { ...wholeOf(row), rank, streak_count: performance.streak.current };
  return {
    profile: { agent: showAs(profile_schema, whole), performance },
    me: { user: showAs(me_user_schema, whole), performance },
  };
};

export const me_schema = Type.Object({ user: me_user_schema, performance: performance_schema });

/** The answer to an agent about itself. */
export const readMe = async (deps: Deps & StandingParts, id: string) => {
  const found = await readAgent(deps, id);
  return isFault(found) ? found : found.me;
};
