import { pino } from 'pino';
import type { Sql } from '../../../src/db/client.js';
import type { Route } from '../../../src/http/route.js';
import { closeRedis, connectRedis, openRedis } from '../../../src/redis/client.js';
import { api_routes } from '../../../src/routes.js';
import { prepareExamples } from '../../contract/example-calls.js';
import { type Answered, startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { openCalls } from '../../help/socket-calls.js';
import { startPrivateStores } from '../../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Stores that answer reads but reject writes. */

/** Makes a test's database read-only, as an operator or a failover would, or writable again. */
const setReadOnly = async (sql: Sql, is_read_only: boolean): Promise<void> => {
  await sql.begin({ mode: 'read write' }, async (tx) => {
    const [row] = await tx<{ name: string }[]>`select quote_ident(current_database()) as name`;
    const what = is_read_only ? 'set default_transaction_read_only = on' : 'reset all';
    await tx.unsafe(`alter database ${row?.name} ${what}`);
  });
  // The setting applies only to new sessions, so the existing ones are ended.
  await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
};

const forecast = (text: string) => ({
  prediction: true,
  confidence: 70,
  reasoning: makeReasoning(text),
});

/** These POST operations write nothing. */
const harmless = ['simulatePoints', 'testWebhook', 'previewResolution', 'mcp'];

t.test('a read-only Postgres: every POST is 503 with Retry-After, and reads go on', async (t) => {
  const app = await startApp(t, {
    roles: ['api', 'relay'],
    env: {
      LIMIT_KEY: '100000000',
      LIMIT_WEBHOOKS: '100000000',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    },
  });
  const { call, sql } = app;
  const question_id = await makeOpenQuestion(app);
  const person = await makeHuman(app);
  const agent = await makeAgent(app, { human: person });
  const predict = { key: agent.key, body: forecast('first') };
  t.equal((await call('POST', `/api/questions/${question_id}/predict`, predict)).status, 201);
  // The session's last use is old enough that the next use would be recorded.
  await sql`update human_tokens set last_used_at = last_used_at - interval '2 hours'`;
  const posts = (api_routes as readonly Route[]).filter(({ method }) => method === 'POST');
  const prepare = await prepareExamples(app);
  const made = await Promise.all(
    posts.map(async (route) => ({ id: route.id, ...(await prepare(route)) })),
  );
  const socket = await openCalls(t, app.port, { 'x-api-key': agent.key });
  // The socket's key is looked up in Postgres first.
  await until('it is welcome', () => socket.frames.some(({ op }) => op === 'welcome'));

  await setReadOnly(sql, true);
  await until('it is told', async () => (await call('GET', '/health')).body.db_writes === false);
  const answers = await Promise.all(
    made.map(async ({ id, path, send }) => ({ id, ...(await call('POST', path, send)) })),
  );
  for (const { id, status, headers, body } of answers) {
    if (harmless.includes(id) || id.startsWith('query')) continue;
    t.equal(status, 503, `${id}: ${JSON.stringify(body)}`);
    t.equal(headers.get('retry-after'), '1', id);
  }
  const other = await socket.call('POST', `/api/questions/${question_id}/comments`, {
    body: { content: 'A comment that cannot be kept just now, as nothing can be written.' },
  });
  t.equal(other.status, 503);
  t.equal(other.headers.get('retry-after'), '1');
  for (const path of [
    '/api/questions',
    `/api/questions/${question_id}`,
    `/api/questions/${question_id}/predictions`,
    `/api/questions/${question_id}/consensus`,
    '/api/leaderboard',
    '/readyz',
  ]) {
    t.equal((await call('GET', path)).status, 200, path);
  }
  t.equal((await call('GET', '/api/me', { key: agent.key })).status, 200);
  t.equal((await call('GET', '/api/me/agents', { token: person.token })).status, 200);
  const health = await call('GET', '/health');
  t.match(health, {
    status: 200,
    body: { status: 'degraded', db: true, db_writes: false, redis: true },
  });

  const { head } = (await call('GET', '/api/events')).body;
  await setReadOnly(sql, false);
  await until('it is told', async () => (await call('GET', '/health')).body.status === 'ok');
  const again = {
    key: agent.key,
    body: { content: 'A comment that can be kept again, as it should.' },
  };
  const path = `/api/questions/${question_id}/comments`;
  t.equal((await call('POST', path, again)).status, 201);
  await until('and it is told on', async () => {
    const { body } = await call('GET', `/api/events?after=${head}`);
    return JSON.stringify(body).includes('comment.');
  });
});

t.test('a Redis without room: health says so, and all goes on as without it', async (t) => {
  const stores = await startPrivateStores(t, { durable: false });
  const env = { LIMIT_PREDICTIONS: '3' };
  const app = await startApp(t, { stores, env, roles: ['api', 'relay'] });
  const { call } = app;
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: stores.redis_url, name: 'test', log, command_timeout_ms: 1_000 });
  await connectRedis(redis);
  t.teardown(() => closeRedis(redis));
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const questions = await Promise.all(Array.from({ length: 5 }, () => makeOpenQuestion(app)));
  const predict = (n: number) =>
    call('POST', `/api/questions/${questions[n]}/predict`, {
      key: agent.key,
      body: forecast(`${n}`),
    });
  t.equal((await predict(0)).status, 201);
  const readHead = async (): Promise<string> =>
    JSON.stringify((await call('GET', '/api/events')).body);
  await until('its event is told', async () => (await readHead()).includes('prediction.placed'));
  await redis.config('SET', 'maxmemory', '1');
  const health = await call('GET', '/health');
  t.match(health, {
    status: 200,
    body: { status: 'degraded', db: true, db_writes: true, redis: false },
  });
  const placed: Answered[] = [];
  for (const n of [1, 2, 3, 4]) placed.push(await predict(n));
  t.same(pluck(placed, 'status'), [201, 201, 201, 429], 'calls are counted here, from nothing');
  const readCount = async (): Promise<number> => {
    const { body } = await call('GET', `/api/questions/${questions[3]}/consensus`);
    return body.total_predictions;
  };
  await until('the consensus has it', async () => (await readCount()) === 1, 5_000);
  await until(
    'its event is told',
    async () => (await readHead()).includes(placed[2]?.body.prediction.id),
    5_000,
  );
  t.equal((await call('GET', '/api/leaderboard')).status, 200);
  await redis.config('SET', 'maxmemory', '0');
  await until('health', async () => (await call('GET', '/health')).body.status === 'ok');
});
