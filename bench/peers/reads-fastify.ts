import { createHash } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import fastify, { LogController } from 'fastify';
import { Redis } from 'ioredis';
import type { Recorded } from './recorded.js';

/**
 * The design most services of this kind have for hot reads: Fastify in front of a cache in Redis.
 * The whole answer is made already; a read is a rate limit by address (`@fastify/rate-limit`, which
 * counts in Redis in a fixed window; the service's windows slide), one GET, an ETag, one line of
 * log. Commands of one turn of the event loop share a round trip.
 */

const redis = new Redis(process.env['REDIS_URL'] ?? '', { enableAutoPipelining: true });
const key = (path: string): string => `peer-reads:${path}`;

const app = fastify({
  logger: { level: 'info', file: process.env['LOG_FILE'] ?? '/dev/null' },
  logController: new LogController({ disableRequestLogging: true }),
});
await app.register(rateLimit, { max: 100_000_000, timeWindow: 60_000, redis });

app.addHook('onResponse', async (request, reply) => {
  request.log.info({ status: reply.statusCode, ms: reply.elapsedTime, path: request.url });
});

app.get('/*', async (request, reply) => {
  const found = await redis.hgetall(key(request.url));
  const { body, type } = found;
  if (body === undefined) return reply.code(404).send();
  const etag = `W/"${createHash('sha1').update(body).digest('base64url')}"`;
  reply.header('ETag', etag).header('Cache-Control', 'public, no-cache');
  reply.header('Access-Control-Allow-Origin', '*');
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  return reply.type(type ?? 'application/json').send(body);
});

await app.listen({ host: '127.0.0.1', port: 0 });
const address = app.server.address();
process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
process.on('message', (recorded: readonly Recorded[]) => {
  for (const { path, headers, body } of recorded) {
    const type = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
    void redis.hset(key(path), { body, type });
  }
});
process.on('disconnect', () => process.exit(0));
