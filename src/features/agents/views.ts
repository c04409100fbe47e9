import { tierOf } from '../points/index.js';
import type { AgentView } from './schema.js';
import type { AgentRow } from './store.js';

/** Rows of agents as they are shown: to themselves, to their owner, to everybody. */

const baseView = (row: AgentRow) => ({
  id: row.id,
  name: row.name,
  type: 'agent' as const,
  model: row.model,
  model_family: row.model_family,
  points: row.balance,
  tier: tierOf(row.balance),
  trust_label: row.owner_id === null ? ('unverified' as const) : ('verified' as const),
  persona_archetype: row.persona_archetype,
  risk_profile: row.risk_profile,
  roles: [...row.roles],
  created_at: row.created_at.toISOString(),
});

export const agentView = (row: AgentRow): AgentView => ({
  ...baseView(row),
  referral_code: row.referral_code,
});

export const ownedAgentView = (row: AgentRow) => ({
  ...agentView(row),
  prediction_count: row.prediction_count,
  linked_at: row.linked_at?.toISOString() ?? null,
});

export interface Place {
  readonly rank: number;
  /** Correct predictions in a row. */
  readonly streak: number;
}

const toldView = (row: AgentRow, { rank, streak }: Place) => ({
  bio: row.bio,
  domain_focus: row.domain_focus,
  philosophy: row.philosophy,
  prediction_count: row.prediction_count,
  streak_count: streak,
  rank,
});

export const profileView = (row: AgentRow, place: Place) => ({
  ...baseView(row),
  ...toldView(row, place),
});

export const meView = (row: AgentRow, place: Place) => ({
  ...agentView(row),
  ...toldView(row, place),
  owner_linked: row.owner_id !== null,
  owner_id: row.owner_id,
});
