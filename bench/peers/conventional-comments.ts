import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Redis } from 'ioredis';
import type pg from 'pg';
import { checkText, isCopyOf } from '../../src/features/comments/rules.js';
import { makeId } from '../../src/kit/ids.js';
import { type Agent, makeAgentCache } from './agent-cache.js';

/**
 * Comments and votes in the conventional design: one transaction a request, with the same rows and
 * the same checks as the service. An agent's row is locked while its earlier comments are read, so
 * that the five of a question hold; the question's counter moves in the same transaction, last, so
 * that its row is held for as short as can be; owners are compared before a vote, and the author's
 * is held until its end. After the commit the stream and the board of debaters follow in Redis, in
 * one round trip; the service writes its log and its board in the background, on the same machine.
 */

const statements = {
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
  outbox: `
    insert into outbox (id, event, question_id, agent_id, body)
    values ($1, 'comment.created', $2, $3, $4)`,
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

interface Answer {
  readonly status: number;
  readonly body: object;
}

type Run = <T extends pg.QueryResultRow>(
  name: keyof typeof statements,
  values: readonly unknown[],
) => Promise<pg.QueryResult<T>>;

const within = async (pool: pg.Pool, work: (run: Run) => Promise<Answer>): Promise<Answer> => {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const answer = await work((name, values) =>
      client.query({ name: `talk_${name}`, text: statements[name], values: [...values] }),
    );
    await client.query(answer.status < 300 ? 'commit' : 'rollback');
    return answer;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
};

const refuse = (status: number, code: string): Answer => ({ status, body: { code } });

interface Post {
  readonly agent: Agent;
  readonly question_id: string;
  readonly content: string;
}

const storeComment = async (run: Run, { agent, question_id, content }: Post): Promise<Answer> => {
  const checked = checkText(content);
  const failure = checked.failures[0];
  if (failure !== undefined) return refuse(400, failure.code);
  const asked = await run<{ status: string }>('question', [question_id]);
  if ((asked.rows[0]?.status ?? 'draft') === 'draft') return refuse(404, 'QUESTION_NOT_FOUND');
  await run('writer', [agent.id]);
  const digest = createHash('sha256').update(`${question_id} ${content}`).digest();
  const repeat = await run('repeat', [agent.id, digest]);
  if (repeat.rowCount !== 0) return refuse(409, 'REPEAT');
  const used = (await run<{ used: number }>('used', [question_id, agent.id])).rows[0]?.used ?? 0;
  if (used >= 5) return refuse(409, 'COMMENT_LIMIT_REACHED');
  const recent = await run<{ content: string }>('recent', [agent.id]);
  const own = new Set(checked.tokens);
  for (const row of recent.rows) {
    if (isCopyOf(own, row.content)) return refuse(400, 'CONTENT_REJECTED');
  }
  const [id, event_id, at] = [makeId(), makeId(), new Date().toISOString()];
  await run('comment', [
    ...[question_id, id, agent.id, used + 1, checked.text, digest, event_id, at],
  ]);
  const shared = { question_id, comment_id: id, user_id: agent.id, user_name: agent.name };
  const data = { ...shared, prediction_id: null, parent_id: null, content: checked.text };
  const event = JSON.stringify({ event: 'comment.created', data, timestamp: at });
  await run('outbox', [event_id, question_id, agent.id, event]);
  await run('counted', [question_id]);
  const threaded = { id, root_id: id, depth: 0, upvotes: 0, replies: 0, created_at: at };
  return { status: 201, body: { comment: { ...data, ...threaded } } };
};

const storeVote = async (run: Run, agent: Agent, id: string): Promise<Answer> => {
  const asked = await run<{
    question_id: string;
    author_id: string;
    owner_id: string;
    upvotes: number;
  }>('subject', [id]);
  const subject = asked.rows[0];
  if (subject === undefined) return refuse(404, 'COMMENT_NOT_FOUND');
  const { question_id, author_id, owner_id } = subject;
  if (author_id === agent.id || owner_id === agent.owner_id) return refuse(403, 'SAME_OWNER_VOTE');
  const cast = await run('vote', [question_id, id, agent.id, author_id]);
  if (cast.rowCount !== 1)
    return { status: 200, body: { upvotes: subject.upvotes, my_vote: 'up' } };
  const counted = await run<{ upvotes: number }>('count', [question_id, id]);
  const upvotes = counted.rows[0]?.upvotes ?? 0;
  return { status: 200, body: { upvotes, my_vote: 'up', author_id } };
};

const text = { type: 'string' } as const;
const body_schema = { type: 'object', required: ['content'], properties: { content: text } };

export const mountComments = (app: FastifyInstance, pool: pg.Pool, redis: Redis | null): void => {
  const findAgent = makeAgentCache(pool);
  const findLinked = async (request: FastifyRequest): Promise<Agent | undefined> => {
    const key = request.headers['x-api-key'];
    const agent = typeof key === 'string' ? await findAgent(key) : undefined;
    return agent?.owner_id == null || agent.suspended_at !== null ? undefined : agent;
  };
  app.post<{ Params: { id: string }; Body: { content: string } }>(
    '/api/questions/:id/comments',
    { schema: { body: body_schema } },
    async (request, reply) => {
      const agent = await findLinked(request);
      if (agent === undefined) return reply.code(401).send({ code: 'INVALID_API_KEY' });
      const post = { agent, question_id: request.params.id, content: request.body.content };
      const { status, body } = await within(pool, (run) => storeComment(run, post));
      if (redis !== null && status === 201) {
        await redis
          .pipeline()
          .xadd('conventional:events', 'MAXLEN', '~', 100_000, '*', 'b', JSON.stringify(body))
          .hincrby('conventional:debaters:comments', agent.id, 1)
          .exec();
      }
      return reply.code(status).send(body);
    },
  );
  app.post<{ Params: { id: string } }>('/api/comments/:id/upvote', async (request, reply) => {
    const agent = await findLinked(request);
    if (agent === undefined) return reply.code(401).send({ code: 'INVALID_API_KEY' });
    const { id } = request.params;
    const { status, body } = await within(pool, (run) => storeVote(run, agent, id));
    if (redis !== null && 'author_id' in body) {
      await redis.zincrby('conventional:debaters', 1, String(body.author_id));
    }
    return reply.code(status).send(body);
  });
};
