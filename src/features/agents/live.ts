import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { makeGather } from '../../kit/gather.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import { waitUntilFloor } from '../../kit/pace.js';
import { type Changes, followChanges } from '../../kit/pg/changes.js';
import type { Service } from '../../kit/service.js';
import { makeEar, makeVoice } from './purges.js';
import { digestKey, isWellFormedKey, nameKey } from './rules.js';
import { findPrincipals, type PrincipalRow } from './store.js';

/**
 * Who an agent key is: an in-process cache in front of Postgres. The ordering rule that keeps it
 * right: whoever changes an agent commits first, then publishes its id; every process that gets the
 * id forgets the agent.
 *
 * - A subscription is trusted only while its pings come back. Messages and pongs share one
 *   connection, so a pong proves that every purge published before its ping has arrived. Without
 *   trust an entry lives no longer than a second, so a key stops within a second in any case.
 * - A subscription that was away may have missed purges: the cache starts empty when it is back.
 * - A change that nobody announced is found in Postgres within seconds (`kit/pg/changes.ts`).
 *   Where that cannot be asked, an entry lives for half a minute.
 * - A look-up that was under way when a purge arrived may have read the row before the change: its
 *   result is not kept, and who asks later than that purge does not get it.
 * - Look-ups go to Postgres together: a fleet that comes back after a pause asks for all its agents
 *   at once, and one by one they cost as much as what they came for.
 * - Only linked agents are kept, so that linking takes effect everywhere at once.
 */

export interface Principals extends Service {
  /** A value without a promise when the key is cached; throws when Postgres is needed and away. */
  byKey(api_key: string): AgentCaller | Fault | Promise<AgentCaller | Fault>;
  /** Makes every process forget the agent; call after the commit that changed it. Never throws. */
  purge(agent_id: string): Promise<void>;
  /** For the metrics and the tests. */
  readonly stats: { readonly size: number; readonly trusted: boolean; readonly loads: number };
}

export interface PrincipalOptions {
  /** Told of every purge that arrives, for what else this process keeps about the agent. */
  readonly onPurge?: (agent_id: string) => void;
  readonly most_entries?: number;
  readonly life_ms?: number;
  /** How often Postgres is asked who has changed. */
  readonly changes_every_ms?: number;
}

const untrusted_life_ms = 1_000;
const unfollowed_life_ms = 30_000;
const trust_ms = 800;
/** Refused keys take at least this long, whether or not a store had to be asked. */
const refusal_floor_ms = 25;

interface Entry {
  readonly caller: AgentCaller;
  loaded_ms: number;
}

const isSame = (one: AgentCaller, other: AgentCaller): boolean =>
  one.id === other.id &&
  one.name === other.name &&
  one.model === other.model &&
  one.model_family === other.model_family &&
  one.owner_id === other.owner_id;

/** The bounded map and its index by agent; the oldest entry goes first. */
const makeCache = (most: number) => {
  const entries = new Map<string, Entry>();
  const keys = new Map<string, string>();
  const drop = (key: string): void => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    if (keys.get(entry.caller.id) === key) keys.delete(entry.caller.id);
  };
  return {
    get: (key: string): Entry | undefined => entries.get(key),
    size: (): number => entries.size,
    /**
     * The caller as it is kept: the same object as before where nothing has changed, so that what
     * others have made for it, like its limits, need not be made anew.
     */
    keep(key: string, caller: AgentCaller, loaded_ms: number): AgentCaller {
      const known = entries.get(key);
      if (known !== undefined && isSame(known.caller, caller)) {
        known.loaded_ms = Math.max(known.loaded_ms, loaded_ms);
        return known.caller;
      }
      // An agent has one key; an older one that is still here goes with its index entry.
      const other = keys.get(caller.id);
      if (other !== undefined) drop(other);
      if (entries.size >= most) drop(entries.keys().next().value as string);
      entries.set(key, { caller, loaded_ms });
      keys.set(caller.id, key);
      return caller;
    },
    forget(agent_id: string): void {
      const key = keys.get(agent_id);
      if (key !== undefined) drop(key);
    },
    clear(): void {
      entries.clear();
      keys.clear();
    },
  };
};

/** What was found for a key, and what had changed when it was looked up. */
interface Read {
  readonly row: PrincipalRow | undefined;
  readonly changes: number;
  readonly began_ms: number;
}

/** Looks agents up by the digest of their key, many in one query. */
const makeReader = (deps: Deps, changes: () => number) => {
  const gather = makeGather<Read>({
    ...{ most: 256, lanes: 2 },
    async read(digests) {
      const about = { changes: changes(), began_ms: performance.now() };
      const rows = await findPrincipals(deps.sql, digests);
      return digests.map((digest) => ({ ...about, row: rows.get(digest) }));
    },
  });
  return async (digest: string): Promise<Read> => {
    const changes_before = changes();
    const found = await gather(digest);
    // It was under way already, and what has changed since may not be in it.
    return found.changes < changes_before ? gather(digest) : found;
  };
};

const callerOf = ({ id, name, model, model_family, owner_id }: PrincipalRow): AgentCaller => ({
  kind: 'agent',
  id,
  name,
  model,
  model_family,
  owner_id,
});

const refuseKey = async (started_ms: number): Promise<Fault> => {
  await waitUntilFloor(started_ms, refusal_floor_ms);
  return refuse(common_faults.INVALID_API_KEY);
};

interface Assurances {
  readonly life_ms: number;
  readonly isTrusted: () => boolean;
  readonly coversSince: Changes['coversSince'];
}

/** Whether an entry may be answered with. */
const makeFreshness =
  ({ life_ms, isTrusted, coversSince }: Assurances) =>
  ({ loaded_ms }: Entry): boolean => {
    const age_ms = performance.now() - loaded_ms;
    if (age_ms < untrusted_life_ms) return true;
    if (age_ms >= life_ms || !isTrusted()) return false;
    return age_ms < unfollowed_life_ms || coversSince(loaded_ms);
  };

export const createPrincipals = (deps: Deps, options: PrincipalOptions = {}): Principals => {
  const { life_ms = 300_000, changes_every_ms: every_ms } = options;
  const cache = makeCache(options.most_entries ?? 50_000);
  let changes = 0;

  const forget = (agent_id: string): void => {
    changes += 1;
    cache.forget(agent_id);
    options.onPurge?.(agent_id);
  };
  const gap = (): void => {
    changes += 1;
    cache.clear();
  };
  const ear = makeEar(deps, { purge: forget, gap });
  const voice = makeVoice(deps);
  const onChanges = (ids: readonly string[]) => ids.forEach(forget);
  const followed = followChanges(deps, { table: 'agents', every_ms, onChanges });
  const read = makeReader(deps, () => changes);

  const isTrusted = () => performance.now() - ear.heardUntil() < trust_ms;
  const isFresh = makeFreshness({ life_ms, isTrusted, coversSince: followed.coversSince });
  const stats = {
    loads: 0,
    get size() {
      return cache.size();
    },
    get trusted() {
      return isTrusted();
    },
  };
  const load = async (api_key: string, name: string): Promise<AgentCaller | Fault> => {
    const started_ms = performance.now();
    if (!isWellFormedKey(api_key)) return refuseKey(started_ms);
    stats.loads += 1;
    const found = await read(digestKey(api_key).toString('hex'));
    const { row } = found;
    if (row === undefined) return refuseKey(started_ms);
    if (row.suspended) return refuse(common_faults.ACCOUNT_SUSPENDED);
    const caller = callerOf(row);
    const may_stay = caller.owner_id !== null && found.changes === changes;
    return may_stay ? cache.keep(name, caller, found.began_ms) : caller;
  };

  return {
    name: 'principals',
    stats,
    byKey(api_key) {
      const name = nameKey(api_key);
      const entry = cache.get(name);
      if (entry !== undefined && isFresh(entry)) return entry.caller;
      return load(api_key, name);
    },
    async purge(agent_id) {
      forget(agent_id);
      await voice.publish(agent_id);
    },
    async start() {
      voice.start();
      await ear.start();
      await followed.start();
    },
    async stop() {
      await followed.stop();
      voice.stop();
      ear.stop();
      cache.clear();
    },
  };
};
