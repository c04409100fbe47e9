import type { Redis } from 'ioredis';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { makeGather } from '../../kit/gather.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import { describeError } from '../../kit/log.js';
import { waitUntilFloor } from '../../kit/pace.js';
import { closeRedis, connectRedis } from '../../kit/redis/client.js';
import type { Service } from '../../kit/service.js';
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
}

const untrusted_life_ms = 1_000;
const ping_every_ms = 250;
const trust_ms = 800;
const most_unsent = 10_000;
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

interface Ear {
  /** Every purge published before this time (`performance.now()`) has arrived. */
  heardUntil(): number;
  start(): Promise<void>;
  stop(): void;
}

/** The subscription with its pings. */
const makeEar = (
  deps: Deps,
  channel: string,
  on: { purge(id: string): void; gap(): void },
): Ear => {
  let redis: Redis | undefined;
  let heard_until_ms = Number.NEGATIVE_INFINITY;
  let subscribed = false;
  let timer: NodeJS.Timeout | undefined;

  const lose = (): void => {
    subscribed = false;
    heard_until_ms = Number.NEGATIVE_INFINITY;
  };
  const subscribe = async (connection: Redis): Promise<void> => {
    try {
      await connection.subscribe(channel);
      on.gap();
      subscribed = true;
      ping();
    } catch (error) {
      deps.log.warn(describeError(error), 'principals: could not subscribe');
      // The connection is made anew, and its next `ready` tries again.
      connection.disconnect(true);
    }
  };
  const ping = (): void => {
    if (redis === undefined || !subscribed) return;
    const sent_ms = performance.now();
    redis.ping().then(
      () => {
        if (subscribed) heard_until_ms = Math.max(heard_until_ms, sent_ms);
      },
      // No pong: the trust runs out by itself.
      () => undefined,
    );
  };
  return {
    heardUntil: () => heard_until_ms,
    async start() {
      const connection = deps.redis.duplicate({
        connectionName: channel,
        enableAutoPipelining: false,
        autoResubscribe: false,
        commandTimeout: 1_000,
        lazyConnect: true,
      });
      redis = connection;
      connection.on('error', () => undefined);
      connection.on('close', lose);
      connection.on('ready', () => {
        lose();
        void subscribe(connection);
      });
      connection.on('message', (_channel: string, id: string) => on.purge(id));
      timer = setInterval(ping, ping_every_ms);
      timer.unref();
      await connectRedis(connection);
    },
    stop() {
      clearInterval(timer);
      if (redis !== undefined) closeRedis(redis);
      redis = undefined;
      lose();
    },
  };
};

interface Voice {
  /** Tells every process; what cannot be told now is told again until it is. Never throws. */
  publish(agent_id: string): Promise<void>;
  start(): void;
  stop(): void;
}

/** The publisher of purges. */
const makeVoice = (deps: Deps, channel: string): Voice => {
  const unsent = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const publish = async (agent_id: string): Promise<void> => {
    try {
      await deps.redis.publish(channel, agent_id);
      unsent.delete(agent_id);
    } catch (error) {
      if (unsent.size < most_unsent) unsent.add(agent_id);
      deps.log.warn(describeError(error), 'principals: a purge waits for Redis');
    }
  };
  return {
    publish,
    start() {
      timer = setInterval(() => {
        for (const agent_id of unsent) void publish(agent_id);
      }, ping_every_ms);
      timer.unref();
    },
    stop: () => clearInterval(timer),
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

export const createPrincipals = (deps: Deps, options: PrincipalOptions = {}): Principals => {
  const { most_entries = 50_000, life_ms = 30_000 } = options;
  const channel = `${deps.config.REDIS_PREFIX}:purge`;
  const cache = makeCache(most_entries);
  let changes = 0;

  const forget = (agent_id: string): void => {
    changes += 1;
    cache.forget(agent_id);
    options.onPurge?.(agent_id);
  };
  const forgetAll = (): void => {
    changes += 1;
    cache.clear();
  };
  const ear = makeEar(deps, channel, { purge: forget, gap: forgetAll });
  const voice = makeVoice(deps, channel);
  const read = makeReader(deps, () => changes);

  const isTrusted = (): boolean => performance.now() - ear.heardUntil() < trust_ms;
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
      const age_ms = performance.now() - (entry?.loaded_ms ?? 0);
      const is_fresh = age_ms < untrusted_life_ms || (age_ms < life_ms && isTrusted());
      if (entry !== undefined && is_fresh) return entry.caller;
      return load(api_key, name);
    },
    async purge(agent_id) {
      forget(agent_id);
      await voice.publish(agent_id);
    },
    async start() {
      voice.start();
      await ear.start();
    },
    async stop() {
      voice.stop();
      ear.stop();
      cache.clear();
    },
  };
};
