import { createHash } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import fastify, { LogController } from 'fastify';
import { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { digestSecret, isWellFormedKey } from '../../src/features/accounts/rules.js';
import { checkText, isCopyOf } from '../../src/features/comments/rules.js';
import { tierOf } from '../../src/features/points/rules.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { makeId } from '../../src/kit/ids.js';
import { serve } from '../env/child.js';

/**
 * The design of most services of this kind: Fastify, a connection pool, and one transaction per
 * request. Schema, rows and checks of texts and keys are the same as the service's. Fastify's
 * compiled ajv schema checks bodies, every statement is prepared, keys are cached, and each request
 * logs one line. This peer also does the service's work in Redis. It checks a rate limit per key
 * (`@fastify/rate-limit`; the service checks three windows per call). After the commit it updates
 * the tally and the stream, in one round trip.
 *
 * An agent's row is locked while its earlier comments are read, to enforce the limit of five per
 * question. The question's counter is updated last in the same transaction, so that its row is
 * locked as briefly as possible. A vote first compares the owners of the voter and the author. The
 * author's row stays locked until the vote is committed.
 */

const { DATABASE_URL = '', POOL = '', LOG_FILE = '', REDIS_URL = '' } = process.env;

const redis = new Redis(REDIS_URL);
// Connections stay open between rounds. By default idle ones close after ten seconds.
const pool = new pg.Pool({
  connectionString: DATABASE_URL,
  max: Number(POOL),
  idleTimeoutMillis: 0,
});

const statements = {
  agent: `
    select id, name, model, model_family, owner_id
    from agents
    where key_digest = $1 and suspended_at is null and owner_id is not null`,
  open_question: `
    select
      status, closes_at > now() as in_time,
      (select balance from accounts where agent_id = $2) as points
    from questions
    where id = $1
    for share`,
  prediction: `
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
      model_family, body_digest, event_id, created_at, revision
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0)
    on conflict (question_id, agent_id) do nothing
    returning id`,
  outbox: `
    insert into outbox (id, event, question_id, agent_id, body)
    values ($1, $2, $3, $4, $5)`,
  question: `select id from questions where id = $1 and status <> 'draft'`,
  writer: `select id from agents where id = $1 for update`,
  used: `
    select coalesce(max(slot), 0)::integer as used
    from comments
    where question_id = $1 and agent_id = $2 and slot is not null`,
  recent: `
    select content, body_digest, created_at > now() - interval '10 minutes' as is_fresh
    from comments
    where agent_id = $1 and created_at > now() - interval '1 hour'
    order by id desc
    limit 10`,
  comment: `
    insert into comments (
      question_id, id, agent_id, root_id, depth, slot, content, body_digest, event_id, created_at
    )
    values ($1, $2, $3, $2, 0, $4, $5, $6, $7, $8)`,
  counted: `
    update question_counts
    set comment_count = comment_count + 1
    where question_id = $1`,
  subject: `
    select c.question_id, c.agent_id as author_id, a.owner_id, c.upvotes
    from comments c
    join agents a on a.id = c.agent_id
    join questions q on q.id = c.question_id
    where c.id = $1 and c.hidden_at is null and q.status <> 'draft'
    for key share of a`,
  vote: `
    insert into votes (question_id, subject_id, agent_id, kind, author_id, value, created_at)
    values ($1, $2, $3, 'comment', $4, 1, now())
    on conflict do nothing
    returning subject_id`,
  count: `
    update comments
    set upvotes = upvotes + 1
    where question_id = $1 and id = $2
    returning upvotes`,
} as const;

type Run = <T>(name: keyof typeof statements, values: readonly unknown[]) => Promise<readonly T[]>;

const runOn =
  (client: pg.Pool | pg.PoolClient): Run =>
  async (name, values) =>
    (await client.query({ name, text: statements[name], values: [...values] })).rows;

const inTransaction = async <T>(work: (run: Run) => Promise<T>): Promise<T> => {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await work(runOn(client));
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
};

/** If this is thrown, Fastify answers with its status. */
const refusal = (statusCode: number, code: string) =>
  Object.assign(new Error(code), { statusCode, code });

interface Agent {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  readonly owner_id: string;
}

/** Agents by key. A revoked key would work for up to ten more seconds. */
const agents = new LRUCache<string, Agent>({
  max: 50_000,
  ttl: 10_000,
  async fetchMethod(key) {
    if (!isWellFormedKey(key)) return undefined;
    return (await runOn(pool)<Agent>('agent', [digestSecret(key)]))[0];
  },
});

interface Forecast {
  readonly prediction: boolean;
  readonly confidence: number;
  readonly reasoning: string;
}

interface Question {
  readonly status: string;
  readonly in_time: boolean;
  readonly points: number;
}

const place = async (agent: Agent, question_id: string, body: Forecast) => {
  const { failures, text: reasoning, citations } = checkReasoning(body.reasoning);
  if (failures.length > 0) throw refusal(400, failures[0]!.code);
  const { prediction, confidence } = body;
  const { id: user_id, name: user_name, model, model_family } = agent;
  const probability = prediction ? confidence : 100 - confidence;
  const [id, event_id, at] = [makeId(), makeId(), new Date().toISOString()];
  const event = 'prediction.placed';
  const shared = { question_id, prediction_id: id, user_id, user_name, model_family };
  const forecast = { confidence, prediction, probability };
  const sent = JSON.stringify({ event, data: { ...shared, ...forecast }, timestamp: at });
  const points = await inTransaction(async (run) => {
    const [question] = await run<Question>('open_question', [question_id, user_id]);
    if (question === undefined) throw refusal(404, 'QUESTION_NOT_FOUND');
    if (question.status !== 'open' || !question.in_time) throw refusal(409, 'QUESTION_NOT_OPEN');
    const digest = createHash('sha256').update(JSON.stringify(body)).digest();
    const inserted = await run('prediction', [
      question_id,
      user_id,
      id,
      prediction,
      100 * probability,
      100 * confidence,
      reasoning,
      citations,
      model_family,
      digest,
      event_id,
      at,
    ]);
    if (inserted.length === 0) throw refusal(409, 'DUPLICATE_PREDICTION');
    await run('outbox', [event_id, event, question_id, user_id, sent]);
    return question.points;
  });
  const tally = `conventional:tally:${question_id}`;
  await redis
    .pipeline()
    .hincrby(tally, `${prediction}:${confidence}:${model_family}`, 1)
    .hset(tally, 't', at)
    .xadd('conventional:events', 'MAXLEN', '~', 100_000, '*', 'id', event_id, 'body', sent)
    .exec();
  const rest = { reasoning, citations, upvotes: 0, downvotes: 0, created_at: at };
  const stored = { id, ...shared, model, ...forecast, ...rest };
  return { prediction: stored, points: { points, tier: tierOf(points) }, event_id };
};

interface Recent {
  readonly content: string;
  readonly body_digest: Buffer;
  readonly is_fresh: boolean;
}

const comment = async (agent: Agent, question_id: string, { content }: { content: string }) => {
  const { failures, tokens, text } = checkText(content);
  if (failures.length > 0) throw refusal(400, failures[0]!.code);
  const [id, event_id, at] = [makeId(), makeId(), new Date().toISOString()];
  const event = 'comment.created';
  const shared = { question_id, comment_id: id, user_id: agent.id, user_name: agent.name };
  const data = { ...shared, prediction_id: null, parent_id: null, content: text };
  const sent = JSON.stringify({ event, data, timestamp: at });
  await inTransaction(async (run) => {
    const [question] = await run('question', [question_id]);
    if (question === undefined) throw refusal(404, 'QUESTION_NOT_FOUND');
    await run('writer', [agent.id]);
    const [{ used } = { used: 0 }] = await run<{ used: number }>('used', [question_id, agent.id]);
    if (used >= 5) throw refusal(409, 'COMMENT_LIMIT_REACHED');
    const digest = createHash('sha256').update(`${question_id} ${content}`).digest();
    const own = new Set(tokens);
    for (const recent of await run<Recent>('recent', [agent.id])) {
      const is_repeat = recent.is_fresh && recent.body_digest.equals(digest);
      if (is_repeat) throw refusal(409, 'REPEAT');
      if (isCopyOf(own, recent.content)) throw refusal(400, 'CONTENT_REJECTED');
    }
    await run('comment', [question_id, id, agent.id, used + 1, text, digest, event_id, at]);
    await run('outbox', [event_id, event, question_id, agent.id, sent]);
    await run('counted', [question_id]);
  });
  await redis
    .pipeline()
    .xadd('conventional:events', 'MAXLEN', '~', 100_000, '*', 'b', sent)
    .hincrby('conventional:debaters:comments', agent.id, 1)
    .exec();
  const threaded = { id, root_id: id, depth: 0, upvotes: 0, replies: 0, created_at: at };
  return { comment: { ...data, ...threaded } };
};

interface Subject {
  readonly question_id: string;
  readonly author_id: string;
  readonly owner_id: string;
  readonly upvotes: number;
}

const upvote = async (agent: Agent, id: string) => {
  const { upvotes, author_id } = await inTransaction(async (run) => {
    const [subject] = await run<Subject>('subject', [id]);
    if (subject === undefined) throw refusal(404, 'COMMENT_NOT_FOUND');
    const { question_id, author_id, owner_id } = subject;
    if (owner_id === agent.owner_id) throw refusal(403, 'SAME_OWNER_VOTE');
    const cast = await run('vote', [question_id, id, agent.id, author_id]);
    if (cast.length === 0) return subject;
    const [counted] = await run<Pick<Subject, 'upvotes'>>('count', [question_id, id]);
    return { upvotes: counted!.upvotes, author_id };
  });
  await redis.zincrby('conventional:debaters', 1, author_id);
  return { upvotes, my_vote: 'up' };
};

const text = { type: 'string' } as const;
const bodies = {
  predict: {
    type: 'object',
    required: ['prediction', 'confidence', 'reasoning'],
    properties: {
      prediction: { type: 'boolean' },
      confidence: { type: 'integer', minimum: 0, maximum: 100 },
      reasoning: { ...text, maxLength: 10_000 },
    },
  },
  comment: { type: 'object', required: ['content'], properties: { content: text } },
  vote: { type: 'object' },
} as const;

const listen = async (): Promise<number> => {
  const app = fastify({
    logger: { level: 'info', file: LOG_FILE },
    // One log line per request, as in the service: the hook below replaces Fastify's two lines.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 65_536,
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, url } = request;
    request.log.info({ method, url, status: reply.statusCode, ms: reply.elapsedTime });
  });
  await app.register(rateLimit, {
    redis,
    nameSpace: 'conventional:limit:',
    max: 100_000_000,
    timeWindow: 60_000,
    keyGenerator: (request) => String(request.headers['x-api-key']),
  });
  const mount = <Body>(
    url: string,
    { status, body }: { readonly status: number; readonly body: object },
    handle: (agent: Agent, id: string, body: Body) => Promise<object>,
  ): void => {
    const params = { type: 'object', properties: { id: { ...text, format: 'uuid' } } };
    const schema = { params, body };
    app.post<{ Params: { id: string } }>(url, { schema }, async (request, reply) => {
      const agent = await agents.fetch(String(request.headers['x-api-key']));
      if (agent === undefined) throw refusal(401, 'INVALID_API_KEY');
      return reply.code(status).send(await handle(agent, request.params.id, request.body as Body));
    });
  };
  mount('/api/questions/:id/predict', { status: 201, body: bodies.predict }, place);
  mount('/api/questions/:id/comments', { status: 201, body: bodies.comment }, comment);
  mount('/api/comments/:id/upvote', { status: 200, body: bodies.vote }, upvote);
  return Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
};

serve({ listen });
