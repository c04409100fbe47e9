import type { Deps } from '../../http/deps.js';
import type { AgentCaller } from '../../http/route.js';
import { makeCache, makeLoader } from '../../kit/cache.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { waitUntilFloor } from '../../kit/service.js';
import { isWellFormedKey, nameKey } from './agent-rules.js';
import { findPrincipals, type PrincipalRow } from './agent-store.js';

/**
 * Who an agent key is. What is known of a key lives for less than a second: then every process
 * learns that it was replaced or that its agent was suspended. Only linked agents are kept, so that
 * linking takes effect everywhere at once.
 */
export interface Principals {
  /** A value without a promise when the key is cached; throws when Postgres is needed and away. */
  byKey(api_key: string): AgentCaller | Fault | Promise<AgentCaller | Fault>;
  /** For the process that changed the agent; call after the commit. */
  forget(agent_id: string): void;
}

/** A key has to stop within a second, the next call and its reading included. */
const life_ms = 900;
const most_entries = 50_000;
/** Refused keys take at least this long, whether or not a store had to be asked. */
const refusal_floor_ms = 25;

const refuseKey = async (started_ms: number): Promise<Fault> => {
  await waitUntilFloor(started_ms, refusal_floor_ms);
  return refuse(common_faults.INVALID_API_KEY);
};

const callerOf = ({ id, name, model, model_family, owner_id }: PrincipalRow): AgentCaller => ({
  kind: 'agent',
  ...{ id, name, model, model_family, owner_id },
});

export const createPrincipals = ({ sql }: Pick<Deps, 'sql'>): Principals => {
  const find = makeLoader(async (digests) => {
    const rows = await findPrincipals(sql, digests);
    return digests.map((digest) => rows.get(digest));
  });
  const cache = makeCache<AgentCaller | Fault>({
    ...{ most: most_entries, ttl_ms: life_ms },
    isKept: (who) => !isFault(who) && who.owner_id !== null,
  });
  const read = async (digest: string): Promise<AgentCaller | Fault> => {
    const started_ms = performance.now();
    const row = await find(digest);
    if (row === undefined) return refuseKey(started_ms);
    return row.suspended ? refuse(common_faults.ACCOUNT_SUSPENDED) : callerOf(row);
  };
  return {
    byKey(api_key) {
      if (!isWellFormedKey(api_key)) return refuseKey(performance.now());
      const digest = nameKey(api_key);
      return cache.get(digest, () => read(digest));
    },
    forget: (agent_id) =>
      cache.forgetWhere((_, who) => who === undefined || (!isFault(who) && who.id === agent_id)),
  };
};
