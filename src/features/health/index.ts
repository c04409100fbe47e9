import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { probeSql } from '../../kit/pg/client.js';
import { withDeadline } from '../../kit/service.js';

/** Is the service there, and are its stores? For people, load balancers and supervisors. */

const route = routeFor<Deps>();
const probe_ms = 1_000;

const isTrue = async (work: Promise<unknown>): Promise<boolean> =>
  withDeadline(work, probe_ms, 'the probe').then(
    () => true,
    () => false,
  );

const probe = async ({ sql, redis }: Deps) => {
  const [db, redis_up] = await Promise.all([isTrue(probeSql(sql)), isTrue(redis.ping())]);
  return { db, redis: redis_up };
};

const health_schema = Type.Object({
  status: Type.String(),
  db: Type.Boolean(),
  redis: Type.Boolean(),
});

const health = route({
  id: 'health',
  method: 'GET',
  path: '/health',
  summary: 'State of the service and its stores; without Redis the service goes on',
  tag: 'health',
  auth: 'public',
  limits: [],
  returns: { 200: health_schema, 503: health_schema },
  handle: async (_ctx, deps) => {
    const { db, redis } = await probe(deps);
    const status = db ? (redis ? 'ok' : 'degraded') : 'down';
    return reply(db ? 200 : 503, { status, db, redis });
  },
});

const livez = route({
  id: 'livez',
  method: 'GET',
  path: '/livez',
  summary: 'The process answers',
  tag: 'health',
  auth: 'public',
  returns: { 200: Type.Object({ status: Type.String() }) },
  handle: () => reply(200, { status: 'ok' }),
});

const readyz = route({
  id: 'readyz',
  method: 'GET',
  path: '/readyz',
  summary: 'The process can do its work: Postgres answers',
  tag: 'health',
  auth: 'public',
  returns: { 200: health_schema, 503: health_schema },
  handle: async (_ctx, deps) => {
    const { db, redis } = await probe(deps);
    return reply(db ? 200 : 503, { status: db ? 'ok' : 'down', db, redis });
  },
});

export const routes = [health, livez, readyz];
