import type { Static, TObject } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { isFault, refuse } from '../../kit/fault.js';
import { readPerformance, readRank } from '../leaderboards/index.js';
import type { AgentKind } from '../leaderboards/rules.js';
import { tierOf } from '../points/rules.js';
import * as store from './agents-store.js';
import type { ListedRow } from './directory-store.js';
import { import_owner_id } from './people-store.js';
import * as wire from './schema.js';

/** Views of an agent: for the public, for its owner and for the agent itself. */

type Shown<S extends TObject> = { readonly [K in keyof Static<S>]: unknown };

/** Picks the members that a schema names, so that no other member leaves the service. */
const showAs = <S extends TObject>(schema: S, agent: Shown<S>): Static<S> =>
  Object.fromEntries(
    Object.keys(schema.properties).map((name) => [name, agent[name as keyof Static<S>]]),
  ) as Static<S>;

const kindOf = ({ owner_id }: store.AgentRow): AgentKind =>
  owner_id === import_owner_id ? 'imported' : 'agent';

/** Nobody answers for an imported agent, so it is never called verified. */
const wholeOf = (row: store.AgentRow) => ({
  ...row,
  type: 'agent',
  kind: kindOf(row),
  points: row.balance,
  tier: tierOf(row.balance),
  trust_label: row.owner_id !== null && kindOf(row) === 'agent' ? 'verified' : 'unverified',
  operator: row.operator && { ...row.operator, verified_at: new Date(row.operator.verified_at) },
  owner_linked: row.owner_id !== null,
  suspended: row.suspended_at !== null,
  predictions_url: `/api/agents/${row.id}/predictions`,
});

export const agentView = (row: store.AgentRow) => showAs(wire.agent_schema, wholeOf(row));

export const ownedAgentView = (row: store.AgentRow) =>
  showAs(wire.owned_agent_schema, wholeOf(row));

export const listedView = (row: ListedRow) => {
  const { kind, net, resolved, correct } = row;
  const accuracy = resolved === 0 ? null : Math.round((10_000 * correct) / resolved) / 100;
  return showAs(wire.listed_agent_schema, { ...wholeOf(row), kind, net, resolved, accuracy });
};

/** Reads an agent with its rank and record. Returns the public view and the agent's own view. */
export const readAgent = async (deps: Deps, id: string) => {
  const { sql, clock } = deps;
  const row = await store.findAgent(sql, id);
  if (row === undefined) return refuse(wire.agents_faults.AGENT_NOT_FOUND);
  const [rank, performance] = await Promise.all([
    readRank(sql, id),
    readPerformance(sql, { agent_id: id, points: row.balance, now: clock() }),
  ]);
  const whole = { ...wholeOf(row), rank, streak_count: performance.streak.current };
  return {
    profile: { agent: showAs(wire.profile_schema, whole), performance },
    me: { user: showAs(wire.me_user_schema, whole), performance },
  };
};

export const readMe = async (deps: Deps, id: string) => {
  const found = await readAgent(deps, id);
  return isFault(found) ? found : found.me;
};
