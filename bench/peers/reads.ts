import uWS from 'uWebSockets.js';
import { createHash } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import fastify, { LogController } from 'fastify';
import { Redis } from 'ioredis';
import { serve } from '../env/child.js';
import { listenOn } from './uws.js';

/** An answer of the service. A peer repeats it. */
export interface Recorded {
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

interface ReadPeer {
  readonly listen: () => Promise<number>;
  /** Sets the answers that the peer gives from now on. */
  readonly learn: (recorded: readonly Recorded[]) => void | Promise<void>;
}

const { KIND, REDIS_URL = '', LOG_FILE = '' } = process.env;

/**
 * The minimum that a server can do: looks up the bytes of a URL in a map and sends them with the
 * headers that the service sends. No limits, no log, no credentials, no changing data.
 */
const makeUws = (): ReadPeer => {
  let answers = new Map<string, Recorded>();
  const app = uWS.App().get('/*', (response, request) => {
    const query = request.getQuery() ?? '';
    const found = answers.get(query === '' ? request.getUrl() : `${request.getUrl()}?${query}`);
    if (found === undefined) {
      response.writeStatus('404 Not Found').end('');
      return;
    }
    for (const [name, value] of found.headers) response.writeHeader(name, value);
    response.end(found.body);
  });
  return {
    listen: () => listenOn(app),
    learn(recorded) {
      answers = new Map(recorded.map((one) => [one.path, one]));
    },
  };
};

/**
 * The design of most services of this kind for hot reads: Fastify in front of a cache in Redis. The
 * cache contains the whole answer. A read consists of a rate limit per address
 * (`@fastify/rate-limit`: fixed windows in Redis, unlike the service's sliding ones), one HGETALL,
 * an ETag and one log line. Commands from one turn of the event loop share a round trip.
 */
const makeFastify = async (): Promise<ReadPeer> => {
  const redis = new Redis(REDIS_URL, { enableAutoPipelining: true });
  const app = fastify({
    logger: { level: 'info', file: LOG_FILE },
    logController: new LogController({ disableRequestLogging: true }),
  });
  await app.register(rateLimit, { max: 100_000_000, timeWindow: 60_000, redis });
  app.addHook('onResponse', async (request, reply) => {
    request.log.info({ status: reply.statusCode, ms: reply.elapsedTime, path: request.url });
  });
  app.get('/*', async (request, reply) => {
    const { body, type } = await redis.hgetall(`peer-reads:${request.url}`);
    if (body === undefined) return reply.code(404).send();
    const etag = `W/"${createHash('sha1').update(body).digest('base64url')}"`;
    reply.header('ETag', etag).header('Cache-Control', 'public, no-cache');
    reply.header('Access-Control-Allow-Origin', '*');
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type(type ?? 'application/json').send(body);
  });
  return {
    listen: async () => Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port),
    async learn(recorded) {
      for (const { path, headers, body } of recorded) {
        const type = new Headers(headers.map(([name, value]) => [name, value])).get('content-type');
        await redis.hset(`peer-reads:${path}`, { body, type: type ?? '' });
      }
    },
  };
};

const handlers = { ...(KIND === 'uws' ? makeUws() : await makeFastify()) };
export type ReadHandlers = typeof handlers;
serve(handlers);
