import { Type } from '@sinclair/typebox';
import { probeWrites, type WriteWatch } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { nullable } from '../../http/schemas.js';
import { withDeadline } from '../../kit/service.js';
import { version } from '../../kit/version.js';
import { isWhole } from '../../redis/client.js';
import { readLag } from '../events/index.js';

/** Health of the service and its stores, for people, load balancers and supervisors. */

export interface HealthParts {
  /** Aborted when the process is about to stop but still serves requests. */
  readonly leaving: AbortController;
  readonly write_watch: WriteWatch;
}

type Parts = Deps & HealthParts;

const route = routeFor<Parts>();
const probe_ms = 1_000;
/** A statement that waits longer than this is blocked by a lock or a dead connection. */
const stuck_ms = 2_000;

/** Returns the result of a probe, or null if it fails or takes too long. */
const answerOf = async <T>(work: Promise<T>): Promise<T | null> =>
  withDeadline(work, probe_ms, 'the probe').catch(() => null);

const probe = async ({ sql, redis, config, write_watch, clock }: Parts) => {
  const [takes_writes, kept, lag_ms] = await Promise.all([
    answerOf(probeWrites(sql)),
    // Probes with a write, because a Redis without disk space or memory still answers reads.
    answerOf(redis.set(`${config.REDIS_PREFIX}:health`, '1', 'EX', 60)),
    answerOf(readLag(sql, clock())),
  ]);
  return {
    db: takes_writes !== null,
    db_writes: takes_writes === true && !write_watch.refuses() && sql.longestWait() < stuck_ms,
    redis: kept === 'OK' && isWhole(redis),
    lag_ms,
    version,
  };
};

const health_schema = Type.Object({
  status: Type.String(),
  db: Type.Boolean({ description: 'Postgres answers' }),
  db_writes: Type.Boolean({
    description:
      'False while Postgres refuses writes (its disk is full, or it is read-only), or has not ' +
      'answered a write for two seconds; reads still work',
  }),
  redis: Type.Boolean({ description: 'Redis, with every master of a cluster, accepts writes' }),
  lag_ms: nullable(
    Type.Integer({
      description: 'Age of the oldest event that waits for its place in the log; null if unknown',
    }),
  ),
  version: Type.String(),
});

const shared = { method: 'GET', tag: 'health', auth: 'public' } as const;
const returns = { 200: health_schema, 503: health_schema };

const health = route({
  ...shared,
  id: 'health',
  path: '/health',
  returns,
  summary: 'State of the service and its stores; without Redis the service still works',
  handle: async (_ctx, deps) => {
    const found = await probe(deps);
    const status = !found.db ? 'down' : found.db_writes && found.redis ? 'ok' : 'degraded';
    return reply(found.db ? 200 : 503, { status, ...found });
  },
});

const livez = route({
  ...shared,
  id: 'livez',
  path: '/livez',
  summary: 'Liveness: the process answers',
  returns: { 200: Type.Object({ status: Type.String() }) },
  handle: () => reply(200, { status: 'ok' }),
});

const readyz = route({
  ...shared,
  id: 'readyz',
  path: '/readyz',
  returns,
  summary: 'Readiness: Postgres answers, and the process is not about to stop',
  handle: async (_ctx, deps) => {
    const found = await probe(deps);
    if (deps.leaving.signal.aborted) return reply(503, { status: 'draining', ...found });
    return reply(found.db ? 200 : 503, { status: found.db ? 'ok' : 'down', ...found });
  },
});

export const routes = [health, livez, readyz];
