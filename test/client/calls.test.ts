import type { Test } from 'tap';
import { createClient, NoAnswer, Refused, type Retry } from '#client/node.js';
import { startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { startFront } from './front.js';

const app = await startApp(t);

/** A proxy before the service that loses answers, and a client of a linked agent. */
const start = async (t: Test) => {
  const front = await startFront(t, app.url);
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const retries: Retry[] = [];
  const client = createClient({
    base_url: `${front.url}/`,
    api_key: agent.key,
    onRetry: (retry) => retries.push(retry),
  });
  return { front, agent, client, retries };
};

t.test('params, query, body and answers are those of the routes', async (t) => {
  const { client, agent } = await start(t);
  const id = await makeOpenQuestion(app);
  const placed = await client.call('predict', {
    params: { id },
    body: { prediction: true, confidence: 80, reasoning: makeReasoning() },
  });
  if (!('event_id' in placed)) throw new Error('this was no dry run');
  t.equal(placed.prediction.user_id, agent.id);
  t.match(placed.event_id, /^[0-9a-f-]{36}$/);
  const { questions } = await client.call('listQuestions', { query: { limit: 1 } });
  t.equal(questions[0]?.id, id);
  t.equal(questions.length, 1);
  t.same((await client.call('listQuestions', { query: { q: 'no such & thing?' } })).questions, []);
  t.equal((await client.call('me')).user.id, agent.id);
});

t.test('an address or an operation that is none is named', async (t) => {
  for (const base_url of ['127.0.0.1:8080', 'localhost:8080', 'ftp://forum.example', '']) {
    t.throws(() => createClient({ base_url }), { message: `not ${base_url}.` });
  }
  const client = createClient({ base_url: 'http://127.0.0.1:2', patience_ms: 0 });
  await t.rejects(client.call('nothing' as 'me'), { message: 'There is no operation nothing.' });
  await t.rejects(client.call('me'), { name: 'NoAnswer', message: /\(.*ECONNREFUSED.*\)\.$/ });
});

t.test('a refusal is an error, or a value whose code can be asked for', async (t) => {
  const { client } = await start(t);
  const params = { id: await makeOpenQuestion(app) };
  const body = { prediction: true, confidence: 80, reasoning: 'Because.' };
  const outcome = await client.attempt('predict', { params, body });
  t.equal(!outcome.ok && outcome.fault.code === 'REASONING_TOO_SHORT', true);
  t.match(outcome, { ok: false, status: 400, fault: { fields: [{ path: /reasoning/ }] } });
  const error = await client.call('predict', { params, body }).catch((error) => error);
  t.ok(error instanceof Refused);
  t.match(error, { code: 'REASONING_TOO_SHORT', status: 400, fault: { retryable: false } });
  t.match(await client.with({ api_key: 'sk_wrong' }).attempt('me'), {
    ok: false,
    fault: { code: 'INVALID_API_KEY', status: 401 },
  });
});

t.test('an answer that is lost is asked for again under the same key', async (t) => {
  const { front, client, retries } = await start(t);
  const id = await makeOpenQuestion(app);
  front.moods.push('lose', 'lose');
  const outcome = await client.attempt('predict', {
    params: { id },
    body: { prediction: true, confidence: 80, reasoning: makeReasoning() },
  });
  t.match(outcome, { ok: true, status: 201, replayed: true });
  t.equal(front.seen.length, 3);
  t.match(front.seen[0]?.key, /^[0-9a-f]{32}$/);
  t.equal(new Set(front.seen.map(({ key }) => key)).size, 1);
  t.match(retries, [{ operation: 'predict', tries: 1 }, { tries: 2 }]);
  const rows = await app.sql`select id from predictions where question_id = ${id}`;
  t.equal(rows.length, 1);
});

t.test('a change is asked for again under its key, and done once', async (t) => {
  const { front, client, agent } = await start(t);
  front.moods.push('lose', { status: 503 });
  const outcome = await client.attempt('updateMe', { body: { bio: 'Once.' } });
  t.match(outcome, { ok: true, status: 200, replayed: true });
  t.equal(front.seen.length, 3);
  t.match(front.seen[0]?.key, /^[0-9a-f]{32}$/);
  t.equal(new Set(front.seen.map(({ key }) => key)).size, 1);
  front.moods.push('lose');
  const call = client.call('updateMe', { body: { bio: 'Perhaps.' }, patience_ms: 0 });
  const error = await call.catch((error) => error);
  t.ok(error instanceof NoAnswer);
  t.equal((error as NoAnswer).maybe_done, true);
  const [row] = await app.sql`select bio from agents where id = ${agent.id}`;
  t.equal(row?.['bio'], 'Perhaps.');
});

t.test('outages and limits are waited out, as long as there is patience', async (t) => {
  const { front, client, retries } = await start(t);
  front.moods.push(
    { status: 503 },
    { status: 502 },
    { status: 429, headers: { 'retry-after': '1' } },
  );
  t.ok((await client.call('me')).user);
  t.strictSame(
    retries.map(({ why }) => why),
    ['503', '502', '429'],
  );
  t.ok((retries[2]?.wait_ms ?? 0) >= 1_000, 'the Retry-After was kept');
  front.moods.push({ status: 429, headers: { 'retry-after': '40' } });
  t.match(await client.attempt('me'), { ok: false, status: 429 });
  t.equal(front.moods.length, 0);
  t.equal(retries.length, 3, 'it was not asked again');
});

t.test('the limits of the service come as faults', async (t) => {
  const limited = await startApp(t, { env: { LIMIT_KEY: '2' }, roles: ['api'] });
  const agent = await makeAgent(limited);
  const client = createClient({ base_url: limited.url, api_key: agent.key, patience_ms: 0 });
  await client.call('me');
  await client.call('me');
  const outcome = await client.attempt('me');
  t.match(outcome, { ok: false, fault: { code: 'RATE_LIMITED', retryable: true } });
});

t.test('a try that takes too long is given up, and made again', async (t) => {
  const { front, client } = await start(t);
  front.moods.push('hang');
  t.ok((await client.call('me', { timeout_ms: 2_000 })).user);
  t.ok(front.seen.length > 1);
});

t.test('a signal ends a call at any time, with its own reason', async (t) => {
  const { front, client } = await start(t);
  const reason = new Error('no longer needed');
  const gone = AbortSignal.abort(reason);
  await t.rejects(client.call('me', { signal: gone }), reason);
  t.equal(front.seen.length, 0, 'before it is sent');

  const waiting = new AbortController();
  front.moods.push({ status: 503, headers: { 'retry-after': '20' } });
  const stopper = client.with({ onRetry: () => waiting.abort(reason) });
  await t.rejects(stopper.call('me', { signal: waiting.signal }), reason);
  t.equal(front.seen.length, 1, 'while it waits for the next try');

  const flying = new AbortController();
  front.moods.push('hang');
  const call = client.call('me', { signal: flying.signal });
  const ended = t.rejects(call, reason);
  await until('it is sent', () => front.seen.length === 2);
  flying.abort(reason);
  await ended;
});

t.test('nobody at all is told as such', async (t) => {
  const { front, client } = await start(t);
  front.moods.push('lose', 'lose', 'lose', 'lose', 'lose', 'lose', 'lose', 'lose');
  const error = await client.call('me', { patience_ms: 500 }).catch((error) => error);
  t.ok(error instanceof NoAnswer);
  t.equal((error as NoAnswer).maybe_done, false);
});
