import { createHash } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import { Redis } from 'ioredis';
import pg from 'pg';
import { tierOf } from '../../src/features/points/rules.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { makeId } from '../../src/kit/ids.js';
import { type Agent, makeAgentCache } from './agent-cache.js';
import { mountComments } from './conventional-comments.js';

/**
 * The design most services of this kind have: Fastify, a connection pool, and one transaction a
 * request. Same schema, same rows, same checks of texts and keys as the service; bodies
 * are checked by Fastify's compiled ajv schema, answers go through its compiled serialiser, every
 * statement is prepared, keys are cached, one line is logged a request. With `REDIS_URL` it also
 * does the service's work in Redis: a rate limit by key (`@fastify/rate-limit`; the service keeps
 * three windows a call), and after the commit the tally and the stream, in one round trip. Without
 * it, it is the bare form: no rate limit, and nothing happens after the commit.
 */

interface Question {
  readonly status: string;
  readonly in_time: boolean;
  readonly points: number;
}

interface Body {
  readonly prediction: boolean;
  readonly confidence: number;
  readonly reasoning: string;
}

interface Refusal {
  readonly status: number;
  readonly code: string;
}

interface Stored {
  readonly id: string;
  readonly event_id: string;
  readonly event_body: string;
  readonly points: number;
  readonly created_at: string;
}

interface Draft {
  readonly agent: Agent;
  readonly question_id: string;
  readonly body: Body;
  /** The reasoning in the form to store. */
  readonly text: string;
  readonly citations: readonly string[];
}

const statements = {
  question: `
    select
      status, closes_at > now() as in_time,
      (select balance from accounts where agent_id = $2) as points
    from questions
    where id = $1
    for share`,
  prediction: `
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
      model_family, body_digest, event_id, created_at
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    on conflict (question_id, agent_id) do nothing`,
  outbox: `
    insert into outbox (id, event, question_id, agent_id, body)
    values ($1, 'prediction.placed', $2, $3, $4)`,
} as const;

type Run = <T extends pg.QueryResultRow>(
  name: keyof typeof statements,
  values: readonly unknown[],
) => Promise<pg.QueryResult<T>>;

const runOn =
  (client: pg.Pool | pg.PoolClient): Run =>
  (name, values) =>
    client.query({ name, text: statements[name], values: [...values] });

const refusal = (status: number, code: string): Refusal => ({ status, code });
const isRefusal = (value: object): value is Refusal => 'code' in value;

const makeEvent = (draft: Draft, prediction_id: string, at: string): string => {
  const { agent, question_id, body } = draft;
  return JSON.stringify({
    event: 'prediction.placed',
    data: {
      question_id,
      prediction_id,
      user_id: agent.id,
      user_name: agent.name,
      model_family: agent.model_family,
      confidence: body.confidence,
      prediction: body.prediction,
      probability: body.prediction ? body.confidence : 100 - body.confidence,
    },
    timestamp: at,
  });
};

/** The statements of one prediction, inside a transaction of the caller. */
const storeRows = async (run: Run, draft: Draft): Promise<Stored | Refusal> => {
  const { agent, question_id, body } = draft;
  const asked = await run<Question & pg.QueryResultRow>('question', [question_id, agent.id]);
  const question = asked.rows[0];
  if (question === undefined) return refusal(404, 'QUESTION_NOT_FOUND');
  if (question.status !== 'open' || !question.in_time) return refusal(409, 'QUESTION_NOT_OPEN');
  const probability = body.prediction ? body.confidence : 100 - body.confidence;
  const id = makeId();
  const event_id = makeId();
  const at = new Date().toISOString();
  const digest = createHash('sha256').update(JSON.stringify(body)).digest();
  const inserted = await run('prediction', [
    ...[question_id, agent.id, id, body.prediction, probability, body.confidence],
    ...[draft.text, draft.citations, agent.model_family, digest, event_id, at],
  ]);
  if (inserted.rowCount !== 1) return refusal(409, 'DUPLICATE_PREDICTION');
  const event_body = makeEvent(draft, id, at);
  await run('outbox', [event_id, question_id, agent.id, event_body]);
  return { id, event_id, event_body, points: question.points, created_at: at };
};

const store = async (pool: pg.Pool, draft: Draft): Promise<Stored | Refusal> => {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const stored = await storeRows(runOn(client), draft);
    await client.query(isRefusal(stored) ? 'rollback' : 'commit');
    return stored;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
};

const text = { type: 'string' } as const;
const whole = { type: 'integer' } as const;
const route_schema = {
  params: { type: 'object', properties: { id: { type: 'string', format: 'uuid' } } },
  body: {
    type: 'object',
    required: ['prediction', 'confidence', 'reasoning'],
    properties: {
      prediction: { type: 'boolean' },
      confidence: { type: 'integer', minimum: 0, maximum: 100 },
      reasoning: { type: 'string', maxLength: 10_000 },
    },
  },
  response: {
    201: {
      type: 'object',
      properties: {
        prediction: {
          type: 'object',
          properties: {
            ...{ id: text, prediction_id: text, question_id: text, user_id: text, user_name: text },
            ...{ model: text, model_family: text, prediction: { type: 'boolean' } },
            ...{ probability: whole, confidence: whole, reasoning: text },
            citations: { type: 'array', items: text },
            ...{ upvotes: whole, downvotes: whole, created_at: text },
          },
        },
        points: { type: 'object', properties: { points: whole, tier: text } },
        event_id: text,
      },
    },
  },
} as const;

const answerOf = (draft: Draft, stored: Stored) => {
  const { agent, question_id, body, citations } = draft;
  return {
    prediction: {
      id: stored.id,
      prediction_id: stored.id,
      question_id,
      user_id: agent.id,
      user_name: agent.name,
      model: agent.model,
      model_family: agent.model_family,
      prediction: body.prediction,
      probability: body.prediction ? body.confidence : 100 - body.confidence,
      confidence: body.confidence,
      reasoning: draft.text,
      citations,
      upvotes: 0,
      downvotes: 0,
      created_at: stored.created_at,
    },
    points: { points: stored.points, tier: tierOf(stored.points) },
    event_id: stored.event_id,
  };
};

/** What others read: the tally of the question and the stream of events. */
const publish = async (redis: Redis, { agent, body, question_id }: Draft, stored: Stored) => {
  const tally = `conventional:tally:${question_id}`;
  await redis
    .pipeline()
    .hincrby(tally, `${body.prediction}:${body.confidence}:${agent.model_family}`, 1)
    .hset(tally, 't', stored.created_at)
    .xadd(
      'conventional:events',
      'MAXLEN',
      '~',
      100_000,
      '*',
      'id',
      stored.event_id,
      'body',
      stored.event_body,
    )
    .exec();
};

const mountPredict = (app: FastifyInstance, pool: pg.Pool, redis: Redis | null): void => {
  const findAgent = makeAgentCache(pool);
  app.post<{ Params: { id: string }; Body: Body }>(
    '/api/questions/:id/predict',
    { schema: route_schema },
    async (request, reply) => {
      const key = request.headers['x-api-key'];
      const agent = typeof key === 'string' ? await findAgent(key) : undefined;
      if (agent === undefined) return reply.code(401).send({ code: 'INVALID_API_KEY' });
      if (agent.suspended_at !== null) return reply.code(403).send({ code: 'ACCOUNT_SUSPENDED' });
      if (agent.owner_id === null) return reply.code(403).send({ code: 'AGENT_NOT_LINKED' });
      const { body } = request;
      const checked = checkReasoning(body.reasoning);
      if (checked.failures.length > 0) {
        return reply.code(400).send({ code: checked.failures[0]?.code, fields: checked.failures });
      }
      const draft = {
        agent,
        question_id: request.params.id,
        body,
        text: checked.text,
        citations: checked.citations,
      };
      const stored = await store(pool, draft);
      if (isRefusal(stored)) return reply.code(stored.status).send({ code: stored.code });
      if (redis !== null) await publish(redis, draft, stored);
      return reply.code(201).send(answerOf(draft, stored));
    },
  );
};

const main = async (): Promise<void> => {
  const { DATABASE_URL = '', POOL = '16', LOG_FILE = '/dev/null', REDIS_URL } = process.env;
  // ioredis reads a plain path as a unix socket.
  const redis = REDIS_URL === undefined ? null : new Redis(REDIS_URL.replace(/^unix:/, ''));
  const pool = new pg.Pool({
    connectionString: DATABASE_URL,
    max: Number(POOL),
    // Connections stay open between rounds; by default idle ones go after ten seconds.
    idleTimeoutMillis: 0,
  });
  const app = fastify({
    logger: { level: 'info', file: LOG_FILE },
    // One line a request, as the service writes: the hook below instead of Fastify's two.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 65_536,
  });
  app.addHook('onResponse', async (request, reply) => {
    request.log.info({
      method: request.method,
      url: request.url,
      status: reply.statusCode,
      ms: reply.elapsedTime,
    });
  });
  if (redis !== null) {
    await app.register(rateLimit, {
      redis,
      nameSpace: 'conventional:limit:',
      max: Number(process.env['LIMIT'] ?? 60),
      timeWindow: 60_000,
      keyGenerator: (request) => String(request.headers['x-api-key']),
    });
  }
  mountPredict(app, pool, redis);
  mountComments(app, pool, redis);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
  process.once('disconnect', () => process.exit(0));
};

await main();
