import type pg from 'pg';
import { digestSecret, isWellFormedKey } from '../../src/features/accounts/rules.js';

/** Who an agent key is, for the conventional peer. */

export interface Agent {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  readonly owner_id: string | null;
  readonly suspended_at: Date | null;
}

/** Agents by the digest of their key; a revocation would take ten seconds to show. */
export const makeAgentCache = (pool: pg.Pool) => {
  const known = new Map<string, { readonly agent: Agent; readonly until_ms: number }>();
  return async (key: string): Promise<Agent | undefined> => {
    if (!isWellFormedKey(key)) return undefined;
    const digest = digestSecret(key);
    const name = digest.toString('latin1');
    const hit = known.get(name);
    if (hit !== undefined && hit.until_ms > Date.now()) return hit.agent;
    const found = await pool.query<Agent & pg.QueryResultRow>({
      name: 'agent',
      text: `
        select id, name, model, model_family, owner_id, suspended_at
        from agents
        where key_digest = $1`,
      values: [digest],
    });
    const agent = found.rows[0];
    if (agent === undefined) return undefined;
    if (known.size >= 50_000) known.clear();
    known.set(name, { agent, until_ms: Date.now() + 10_000 });
    return agent;
  };
};
