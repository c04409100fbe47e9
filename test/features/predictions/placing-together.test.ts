import type { Test } from 'tap';
import { type Answered, startApp } from '../../help/app.js';
import { openCalls } from '../../help/socket-calls.js';
import { openStores, openTestRedis } from '../../help/stores.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { untilLocked } from '../../help/until-locked.js';
import { findPort } from '../log/log-server.js';
import { type Ask, bodyOf, countStored, openQuestions, predict } from './own-predictions.js';

/** Many simultaneous predictions of one agent are stored together, but judged one by one. */

const stores = await openStores(t);
const metrics_ports: number[] = [];
const start = async () => {
  const port = await findPort();
  metrics_ports.push(port);
  return startApp(t, { stores, roles: ['api'], env: { METRICS_PORT: String(port) } });
};
const apps = [await start(), await start()] as const;
const [app] = apps;
const redis = await openTestRedis(t, stores.redis_url);
/** When each process's presence expires. A process renews its own when it looks for the others. */
const readPresence = async (): Promise<readonly number[]> => {
  const key = `${stores.redis_prefix}:{home}:processes`;
  const flat = await redis.zrange(key, 0, '-1', 'WITHSCORES');
  return flat.flatMap((one, n) => (n % 2 === 1 ? [Number(one)] : []));
};
const both = await until('both are there', async () => {
  const found = await readPresence();
  return found.length === apps.length && found;
});
await until('each has looked since, and both name the same owner', async () =>
  (await readPresence()).every((until_ms) => until_ms > Math.max(...both) + 500),
);
const human = await makeHuman(app);
const questions = (count: number) => openQuestions(app, human, count);

const outcome = ({ status, body }: Answered): string => body.code ?? String(status);

/** Predictions in the queues of both processes, as their metrics report. */
const countWaiting = async (): Promise<number> => {
  const counts = metrics_ports.map(async (port) => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return Number(/prediction_drafts_waiting(?:\{[^}]*\})? (\d+)\n/.exec(text)?.[1]);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
};

/**
 * Blocks an earlier prediction, and meanwhile sends these over a socket, which keeps their order.
 * So all of them form one batch.
 */
const predictTogether = async (
  t: Pick<Test, 'teardown'>,
  agent: Agent,
  asks: readonly Ask[],
): Promise<Answered[]> => {
  const first_id = await makeOpenQuestion(app);
  const socket = await openCalls(t, app.port, { 'x-api-key': agent.key });
  const answers = await app.sql.begin(async (tx) => {
    await tx`select from questions where id = ${first_id} for update`;
    const first = predict(app, agent, { id: first_id, confidence: 50 });
    await untilLocked('the first one waits for its question', tx);
    const others = asks.map((ask) =>
      socket.call('POST', `/api/questions/${ask.id}/predict`, {
        headers:
          ask.idempotency_key === undefined ? {} : { 'idempotency-key': ask.idempotency_key },
        body: bodyOf(ask),
      }),
    );
    await until('all wait', async () => {
      // Keeps the transaction alive, because Postgres ends one that is idle for seconds.
      await tx`select`;
      return (await countWaiting()) === asks.length;
    });
    return () => Promise.all([first, ...others]);
  });
  const [first, ...others] = await answers();
  if (first?.status !== 201) throw new Error(JSON.stringify(first));
  return others;
};

t.test('they are one transaction, with a key and without, each with its event', async (t) => {
  const agent = await makeAgent(app, { human });
  const ids = await questions(20);
  const asks = ids.map((id, n) => ({
    id,
    confidence: 60 + n,
    ...(n % 3 === 0 && { idempotency_key: `place-${id}` }),
  }));
  t.same((await predictTogether(t, agent, asks)).map(outcome), Array(20).fill('201'));
  const stored = await countStored(app, agent);
  t.same(stored, { transactions: 2, predictions: 21 }, 'the one that was held up, and the others');
  const events = await app.sql`select from outbox where agent_id = ${agent.id}`;
  t.equal(events.length, 21, 'each with its event');
});

t.test('what is refused for itself refuses none behind it', async (t) => {
  const agent = await makeAgent(app, { human });
  const [a, b, c, d, closing] = (await questions(5)) as [string, string, string, string, string];
  const used = makeReasoning('used');
  const [x = '', y = ''] = used.match(/https:\/\/\S*[^\s.]/g) ?? [];
  const other = makeReasoning('other');
  const [u = '', v = ''] = other.match(/https:\/\/\S*[^\s.]/g) ?? [];
  await predict(app, agent, { id: d });
  await app.sql`update questions set closes_at = now() where id = ${closing}`;
  const answers = await predictTogether(t, agent, [
    { id: a, reasoning: used },
    { id: closing },
    { id: d },
    // The two sources are cited only by earlier predictions in the same batch.
    { id: b, reasoning: other.replace(u, x).replace(v, y) },
    { id: a },
    { id: c },
  ]);
  t.same(answers.map(outcome), [
    '201',
    'QUESTION_NOT_OPEN',
    'DUPLICATE_PREDICTION',
    'CITATIONS_REUSED',
    'DUPLICATE_PREDICTION',
    '201',
  ]);
  t.equal((await countStored(app, agent)).predictions, 4);
});

t.test('through two processes at once nothing is lost or stored twice', async (t) => {
  for (let round = 0; round < 4; round += 1) {
    const agent = await makeAgent(app, { human });
    const ids = await questions(16);
    // Half of the questions get one prediction through each process, so the second is a duplicate.
    const answers = await Promise.all(
      ids.flatMap((id, n) =>
        (n % 2 === 0 ? [0, 1] : [n % 4 === 1 ? 0 : 1]).map((at) =>
          predict(apps[at]!, agent, { id }),
        ),
      ),
    );
    const counts = new Map<string, number>();
    for (const one of answers) counts.set(outcome(one), (counts.get(outcome(one)) ?? 0) + 1);
    t.same(Object.fromEntries(counts), { 201: 16, DUPLICATE_PREDICTION: 8 });
    t.equal((await countStored(app, agent)).predictions, 16);
  }
});

t.test('a call with many predictions stores some at a time, in their order', async (t) => {
  const agent = await makeAgent(app, { human });
  const ids = await questions(32);
  const items = ids.map((id, n) => ({
    question_id: ids[n % 8 === 3 ? n - 1 : n]!,
    ...bodyOf({ id }),
  }));
  const { status, body } = await app.call('POST', '/api/predictions/batch', {
    key: agent.key,
    body: { predictions: items },
  });
  t.equal(status, 200);
  const results = body.results as readonly { readonly status: number; readonly code?: string }[];
  t.same(
    results.map(({ code, status }) => code ?? status),
    items.map((_, n) => (n % 8 === 3 ? 'DUPLICATE_PREDICTION' : 201)),
    'as if they had come one after the other',
  );
  const { transactions, predictions } = await countStored(app, agent);
  t.equal(predictions, 28);
  t.ok(transactions < predictions / 2, `${predictions} in ${transactions} transactions`);
});

t.test('an import that stores nothing leaves its question open to predictions', async (t) => {
  const source = { source: 'together', source_id: '1' };
  const id = await makeOpenQuestion(app, source);
  const [early, late] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
  t.equal((await predict(app, early, { id })).status, 201);
  const importing = (path: string, item: object) =>
    app.call('POST', path, { admin: true, body: { items: [item] } });
  await importing('/api/admin/agents/import', { name: 'From elsewhere', model: 'gpt-5' });
  const forecast = { ...source, agent: 'From elsewhere', prediction: true, confidence: 70 };
  for (const status of ['created', 'exists', 'exists']) {
    const { body } = await importing('/api/admin/predictions/import', forecast);
    t.match(body.results, [{ status }]);
  }
  t.equal((await predict(app, late, { id })).status, 201);
});
