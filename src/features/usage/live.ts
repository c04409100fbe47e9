import type { Caller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import type { Limiter } from '../../http/limits.js';
import type { Answer, Route } from '../../http/route.js';
import { isFault } from '../../kit/fault.js';
import { makeLoop } from '../../kit/loop.js';
import { type Service, withDeadline } from '../../kit/service.js';
import { isCluster, loadScript } from '../../redis/client.js';
import { windowsOfAgent } from '../limits/rules.js';
import {
  addCall,
  type Counted,
  changeOf,
  kept_s,
  makeCounted,
  oldestHour,
  readCalls,
} from './rules.js';
import type { CallsWire } from './schema.js';

/**
 * Counts the calls of agents. Each process counts in memory and adds its counts to Redis every two
 * seconds. A failed write is not retried, because it may have taken effect. The figures are for
 * people who look after their agents, not for billing.
 */

const script = loadScript('count-calls-n.lua');
const every_ms = 2_000;
/** Small enough that one script call takes a millisecond or two at most. */
const agents_a_script = 100;
const patience_ms = 500;

interface Batch {
  readonly refused: number;
  readonly results: readonly { readonly code?: string }[];
}

/** Returns the code of a refusal, or the codes of the refused items of a batch. */
const codesOf = (answer: Answer): readonly string[] => {
  if (isFault(answer)) return [answer.def.code];
  const { refused = 0, results = [] } = (answer.body ?? {}) as Partial<Batch>;
  return refused === 0 ? [] : results.flatMap(({ code }) => code ?? []);
};

export interface UsageParts {
  readonly usage: ReturnType<typeof createUsage>;
}

type UsageDeps = Pick<Deps, 'config' | 'redis' | 'clock' | 'log'>;

export const createUsage = ({ config, redis, clock, log }: UsageDeps, limiter: Limiter) => {
  let counted = new Map<string, Counted>();
  const keyOf = (id: string): string => `${config.REDIS_PREFIX}:{calls:${id}}`;

  const write = async (some: readonly (readonly [string, Counted])[], now: Date) => {
    const keys = some.map(([id]) => keyOf(id));
    const changes = some.map(([, one]) => changeOf(one, now));
    await script(redis, keys, [now.toISOString(), oldestHour(now), kept_s, ...changes]);
  };

  const flush = async (): Promise<void> => {
    const all = [...counted];
    counted = new Map();
    if (redis.status !== 'ready') return;
    const now = clock();
    // In a cluster, all keys of a script call must be on one node.
    const size = isCluster(redis) ? 1 : agents_a_script;
    const writes: Promise<void>[] = [];
    for (let from = 0; from < all.length; from += size) {
      writes.push(write(all.slice(from, from + size), now));
    }
    await Promise.all(writes);
  };

  const loop = makeLoop({
    name: 'usage',
    log,
    every_ms,
    async turn() {
      await flush();
      return 'rest';
    },
  });
  const service: Service = {
    name: 'usage',
    start: loop.start,
    async stop() {
      await loop.stop();
      await flush().catch(() => undefined);
    },
  };

  /** Returns null if Redis does not respond in time. */
  const readHashes = async (ids: readonly string[]) => {
    const read = async () => {
      await flush();
      return Promise.all(ids.map((id) => redis.hgetall(keyOf(id))));
    };
    if (redis.status !== 'ready') return null;
    return withDeadline(read(), patience_ms, 'Redis').catch(() => null);
  };

  const readLimits = async (id: string) => {
    const windows = windowsOfAgent(config, id);
    const left = await limiter.look(windows);
    return windows.map(({ name, limit, window_ms }, n) => ({
      name,
      limit,
      window_seconds: window_ms / 1_000,
      left: left[n]?.left ?? 0,
      reset_seconds: Math.ceil((left[n]?.reset_ms ?? 0) / 1_000),
    }));
  };

  return {
    service,
    /** Counts an answered call if an agent made it. */
    note(
      caller: Caller,
      { id: route, method }: Pick<Route, 'id' | 'method'>,
      answer: Answer,
    ): void {
      if (caller.kind !== 'agent') return;
      const one = counted.get(caller.id) ?? makeCounted();
      counted.set(caller.id, one);
      const status = isFault(answer) ? answer.def.status : answer.status;
      addCall(one, { at: clock(), method, route, status, codes: codesOf(answer) });
    },
    /** Returns limits and calls of these agents. Calls are null while Redis does not respond. */
    async read(ids: readonly string[]) {
      const [hashes, limits] = await Promise.all([
        readHashes(ids),
        Promise.all(ids.map(readLimits)),
      ]);
      const now = clock();
      const calls = (n: number): CallsWire | null => {
        const hash = hashes?.[n];
        return hash === undefined ? null : readCalls(hash, now);
      };
      return ids.map((_, n) => ({ limits: limits[n] ?? [], calls: calls(n) }));
    },
  };
};
