import type { Deps } from '../../http/deps.js';
import type { AgentCaller } from '../../http/route.js';
import { makeCache, makeLoader } from '../../kit/cache.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { sha256 } from '../../kit/ids.js';
import { waitUntilFloor } from '../../kit/service.js';
import { findPrincipals } from './agents-store.js';
import { isWellFormedKey } from './rules.js';

/**
 * The agent of a key. An entry of the cache lives for less than a second: then every process learns
 * that the key was replaced or that its agent was suspended. Only linked agents are cached, so that
 * linking takes effect everywhere at once.
 */
export type Principals = ReturnType<typeof createPrincipals>;

/** A key has to stop within a second, the next call and its reading included. */
const life_ms = 900;
const most_entries = 50_000;
/** A refusal takes at least this long, whether or not Postgres was queried. */
const refusal_floor_ms = 25;

const refuseKey = async (started_ms: number): Promise<Fault> => {
  await waitUntilFloor(started_ms, refusal_floor_ms);
  return refuse(common_faults.INVALID_API_KEY);
};

export const createPrincipals = ({ sql }: Pick<Deps, 'sql'>) => {
  const find = makeLoader(async (digests) => {
    const rows = await findPrincipals(sql, digests);
    return digests.map((digest) => rows.get(digest));
  });
  const cache = makeCache<AgentCaller | Fault>({
    ...{ most: most_entries, ttl_ms: life_ms },
    isKept: (caller) => !isFault(caller) && caller.owner_id !== null,
  });
  const read = async (digest: string): Promise<AgentCaller | Fault> => {
    const started_ms = performance.now();
    const row = await find(digest);
    if (row === undefined) return refuseKey(started_ms);
    const { suspended, ...agent } = row;
    return suspended ? refuse(common_faults.ACCOUNT_SUSPENDED) : { kind: 'agent', ...agent };
  };
  return {
    /** No promise when the key is cached; rejects when Postgres is needed and away. */
    byKey(api_key: string): AgentCaller | Fault | Promise<AgentCaller | Fault> {
      if (!isWellFormedKey(api_key)) return refuseKey(performance.now());
      const digest = sha256(api_key, 'hex');
      return cache.get(digest, () => read(digest));
    },
    /** For the process that changed the agent; call after the commit. */
    forget: (agent_id: string) =>
      cache.forgetWhere(
        (_, caller) => caller === undefined || (!isFault(caller) && caller.id === agent_id),
      ),
  };
};
