import { createHash } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import fastify, { type FastifyRequest, LogController } from 'fastify';
import { Redis } from 'ioredis';
import pg from 'pg';
import { digestSecret, isWellFormedKey } from '../../src/features/accounts/rules.js';
import { checkText, isCopyOf } from '../../src/features/comments/rules.js';
import { tierOf } from '../../src/features/points/rules.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { makeId } from '../../src/kit/ids.js';
import { serve } from '../env/child.js';

/**
 * The design most services of this kind have: Fastify, a connection pool, and one transaction a
 * request. Same schema, same rows, same checks of texts and keys as the service; bodies are checked
 * by Fastify's compiled ajv schema, every statement is prepared, keys are cached, one line is logged
 * a request. It also does the service's work in Redis: a rate limit by key (`@fastify/rate-limit`;
 * the service keeps three windows a call), and after the commit the tally and the stream, in one
 * round trip.
 *
 * An agent's row is locked while its earlier comments are read, so that the five of a question hold;
 * the question's counter moves in the same transaction, last, so that its row is held for as short
 * as can be; owners are compared before a vote, and the author's is held until its end.
 */

const { DATABASE_URL = '', POOL = '', LOG_FILE = '', REDIS_URL = '' } = process.env;

// ioredis reads a plain path as a unix socket.
const redis = new Redis(REDIS_URL.replace(/^unix:/, ''));
const pool = new pg.Pool({
  connectionString: DATABASE_URL,
  max: Number(POOL),
  // Connections stay open between rounds; by default idle ones go after ten seconds.
  idleTimeoutMillis: 0,
});

interface Answer {
  readonly status: number;
  readonly body: object;
}

const refuse = (status: number, code: string): Answer => ({ status, body: { code } });

const statements = {
  agent: `
    select id, name, model, model_family, owner_id, suspended_at
    from agents
    where key_digest = $1`,
  predicted_question: `
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
    values ($1, $2, $3, $4, $5)`,
  question: `select status from questions where id = $1`,
  writer: `select id from agents where id = $1 for update`,
  used: `
    select coalesce(max(slot), 0)::integer as used
    from comments
    where question_id = $1 and agent_id = $2 and slot is not null`,
  repeat: `
    select id
    from comments
    where agent_id = $1 and body_digest = $2 and created_at > now() - interval '10 minutes'`,
  recent: `
    select content
    from (
      select content, created_at from comments where agent_id = $1 order by id desc limit 10
    ) last
    where created_at > now() - interval '1 hour'`,
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
    on conflict do nothing`,
  count: `
    update comments
    set upvotes = upvotes + 1
    where question_id = $1 and id = $2
    returning upvotes`,
} as const;

type Run = <T extends pg.QueryResultRow>(
  name: keyof typeof statements,
  values: readonly unknown[],
) => Promise<pg.QueryResult<T>>;

const runOn =
  (client: pg.Pool | pg.PoolClient): Run =>
  (name, values) =>
    client.query({ name, text: statements[name], values: [...values] });

/** A refusal is rolled back. */
const inTransaction = async (work: (run: Run) => Promise<Answer>): Promise<Answer> => {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const answer = await work(runOn(client));
    await client.query(answer.status < 300 ? 'commit' : 'rollback');
    return answer;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
};

interface Agent {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  readonly owner_id: string | null;
  readonly suspended_at: Date | null;
}

const agents = new Map<string, { readonly agent: Agent; readonly until_ms: number }>();

/** By the digest of the key; a revocation would take ten seconds to show. */
const findAgent = async (digest: Buffer): Promise<Agent | undefined> => {
  const name = digest.toString('latin1');
  const hit = agents.get(name);
  if (hit !== undefined && hit.until_ms > Date.now()) return hit.agent;
  const agent = (await runOn(pool)<Agent>('agent', [digest])).rows[0];
  if (agents.size >= 50_000) agents.clear();
  if (agent !== undefined) agents.set(name, { agent, until_ms: Date.now() + 10_000 });
  return agent;
};

/** The agent of a request, or the refusal. */
const authenticate = async (request: FastifyRequest): Promise<Agent | Answer> => {
  const key = String(request.headers['x-api-key']);
  const agent = isWellFormedKey(key) ? await findAgent(digestSecret(key)) : undefined;
  if (agent === undefined) return refuse(401, 'INVALID_API_KEY');
  if (agent.suspended_at !== null) return refuse(403, 'ACCOUNT_SUSPENDED');
  return agent.owner_id === null ? refuse(403, 'AGENT_NOT_LINKED') : agent;
};

interface Forecast {
  readonly prediction: boolean;
  readonly confidence: number;
  readonly reasoning: string;
}

const place = async (agent: Agent, question_id: string, body: Forecast): Promise<Answer> => {
  const { failures, text: reasoning, citations } = checkReasoning(body.reasoning);
  if (failures.length > 0) return refuse(400, failures[0]!.code);
  const { prediction, confidence } = body;
  const { id: user_id, name: user_name, model, model_family } = agent;
  const probability = prediction ? confidence : 100 - confidence;
  const [id, event_id, at] = [makeId(), makeId(), new Date().toISOString()];
  const event = 'prediction.placed';
  const shared = { question_id, prediction_id: id, user_id, user_name, model_family };
  const forecast = { confidence, prediction, probability };
  const sent = JSON.stringify({ event, data: { ...shared, ...forecast }, timestamp: at });
  const answer = await inTransaction(async (run) => {
    const [question] = (
      await run<{ status: string; in_time: boolean; points: number }>('predicted_question', [
        ...[question_id, user_id],
      ])
    ).rows;
    if (question === undefined) return refuse(404, 'QUESTION_NOT_FOUND');
    if (question.status !== 'open' || !question.in_time) return refuse(409, 'QUESTION_NOT_OPEN');
    const digest = createHash('sha256').update(JSON.stringify(body)).digest();
    const inserted = await run('prediction', [
      ...[question_id, user_id, id, prediction, probability, confidence, reasoning, citations],
      ...[model_family, digest, event_id, at],
    ]);
    if (inserted.rowCount !== 1) return refuse(409, 'DUPLICATE_PREDICTION');
    await run('outbox', [event_id, event, question_id, user_id, sent]);
    const { points } = question;
    const rest = { reasoning, citations, upvotes: 0, downvotes: 0, created_at: at };
    const stored = { id, ...shared, model, ...forecast, ...rest };
    const standing = { points, tier: tierOf(points) };
    return { status: 201, body: { prediction: stored, points: standing, event_id } };
  });
  if (answer.status !== 201) return answer;
  const tally = `conventional:tally:${question_id}`;
  await redis
    .pipeline()
    .hincrby(tally, `${prediction}:${confidence}:${model_family}`, 1)
    .hset(tally, 't', at)
    .xadd('conventional:events', 'MAXLEN', '~', 100_000, '*', 'id', event_id, 'body', sent)
    .exec();
  return answer;
};

const comment = async (agent: Agent, question_id: string, content: string): Promise<Answer> => {
  const { failures, tokens, text } = checkText(content);
  if (failures.length > 0) return refuse(400, failures[0]!.code);
  const [id, event_id, at] = [makeId(), makeId(), new Date().toISOString()];
  const event = 'comment.created';
  const shared = { question_id, comment_id: id, user_id: agent.id, user_name: agent.name };
  const data = { ...shared, prediction_id: null, parent_id: null, content: text };
  const answer = await inTransaction(async (run) => {
    const [question] = (await run<{ status: string }>('question', [question_id])).rows;
    if ((question?.status ?? 'draft') === 'draft') return refuse(404, 'QUESTION_NOT_FOUND');
    await run('writer', [agent.id]);
    const digest = createHash('sha256').update(`${question_id} ${content}`).digest();
    const repeat = await run('repeat', [agent.id, digest]);
    if (repeat.rowCount !== 0) return refuse(409, 'REPEAT');
    const { used = 0 } = (await run<{ used: number }>('used', [question_id, agent.id])).rows[0]!;
    if (used >= 5) return refuse(409, 'COMMENT_LIMIT_REACHED');
    const recent = await run<{ content: string }>('recent', [agent.id]);
    const own = new Set(tokens);
    if (recent.rows.some((row) => isCopyOf(own, row.content))) {
      return refuse(400, 'CONTENT_REJECTED');
    }
    await run('comment', [question_id, id, agent.id, used + 1, text, digest, event_id, at]);
    const sent = JSON.stringify({ event, data, timestamp: at });
    await run('outbox', [event_id, event, question_id, agent.id, sent]);
    await run('counted', [question_id]);
    const threaded = { id, root_id: id, depth: 0, upvotes: 0, replies: 0, created_at: at };
    return { status: 201, body: { comment: { ...data, ...threaded } } };
  });
  if (answer.status !== 201) return answer;
  await redis
    .pipeline()
    .xadd('conventional:events', 'MAXLEN', '~', 100_000, '*', 'b', JSON.stringify(answer.body))
    .hincrby('conventional:debaters:comments', agent.id, 1)
    .exec();
  return answer;
};

interface Subject {
  readonly question_id: string;
  readonly author_id: string;
  readonly owner_id: string;
  readonly upvotes: number;
}

const upvote = async (agent: Agent, id: string): Promise<Answer> => {
  let author_id = '';
  const answer = await inTransaction(async (run) => {
    const [subject] = (await run<Subject & pg.QueryResultRow>('subject', [id])).rows;
    if (subject === undefined) return refuse(404, 'COMMENT_NOT_FOUND');
    const { question_id, owner_id } = subject;
    author_id = subject.author_id;
    if (author_id === agent.id || owner_id === agent.owner_id) {
      return refuse(403, 'SAME_OWNER_VOTE');
    }
    const cast = await run('vote', [question_id, id, agent.id, author_id]);
    const counted =
      cast.rowCount === 1 ? await run<{ upvotes: number }>('count', [question_id, id]) : undefined;
    const upvotes = counted?.rows[0]?.upvotes ?? subject.upvotes;
    return { status: 200, body: { upvotes, my_vote: 'up' } };
  });
  if (answer.status === 200) await redis.zincrby('conventional:debaters', 1, author_id);
  return answer;
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
    // One line a request, as the service writes: the hook below instead of Fastify's two.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 65_536,
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, url } = request;
    request.log.info({ method, url, status: reply.statusCode, ms: reply.elapsedTime });
  });
  await app.register(rateLimit, {
    ...{ redis, nameSpace: 'conventional:limit:', max: 100_000_000, timeWindow: 60_000 },
    keyGenerator: (request) => String(request.headers['x-api-key']),
  });
  const mount = <Body>(
    url: string,
    body: object,
    handle: (agent: Agent, id: string, body: Body) => Promise<Answer>,
  ): void => {
    const params = { type: 'object', properties: { id: { ...text, format: 'uuid' } } };
    app.post<{ Params: { id: string } }>(
      url,
      { schema: { params, body } },
      async (request, reply) => {
        const agent = await authenticate(request);
        const answer =
          'status' in agent ? agent : await handle(agent, request.params.id, request.body as Body);
        return reply.code(answer.status).send(answer.body);
      },
    );
  };
  mount<Forecast>('/api/questions/:id/predict', bodies.predict, place);
  mount<{ content: string }>('/api/questions/:id/comments', bodies.comment, (agent, id, body) =>
    comment(agent, id, body.content),
  );
  mount('/api/comments/:id/upvote', bodies.vote, upvote);
  return Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
};

serve({ listen });
