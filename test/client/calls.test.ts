import type { Test } from 'tap';
import { retryAfterMs } from '#client/calls.js';
import { createClient, NoAnswer, Refused, type Retry } from '#client/node.js';
import { startApp } from '../help/app.js';
import { range } from '../help/hub.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Mood, startFront } from './front.js';

const app = await startApp(t);

/** A proxy that loses the service's answers, and a client of a linked agent. */
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

/** Starts a server that gives this answer to every request and records the requests. */
const serve = async (t: Test, mood: Exclude<Mood, string>) => {
  const front = await startFront(t, app.url);
  front.moods.push(...Array<Mood>(100).fill(mood));
  return front;
};

const json = { 'content-type': 'application/json' };

t.test('a redirect is refused, and names the address to use', async (t) => {
  const elsewhere = await serve(t, { status: 200, headers: json, body: '{}' });
  for (const status of [300, 301, 302, 303, 307, 308]) {
    const location = `${elsewhere.url}/api/me`;
    const front = await serve(t, { status, headers: { location } });
    const client = createClient({ base_url: front.url, api_key: 'secret' });
    const error = await client.call('updateMe', { body: { bio: 'x' } }).catch((error) => error);
    t.match(error, { name: 'Refused', code: 'REDIRECTED', status, fault: { retryable: false } });
    t.match(error.message, `is redirected to ${location}. Use ${elsewhere.url} as the address`);
    t.equal(front.seen.length, 1);
  }
  const nowhere = await serve(t, { status: 304 });
  const client = createClient({ base_url: nowhere.url });
  await t.rejects(client.call('me', { patience_ms: 0 }), { name: 'NoAnswer', status: 304 });
  const headers = { 'If-None-Match': '"x"' };
  t.match(await client.attempt('me', { headers }), { ok: true, status: 304 });
  t.same(elsewhere.seen, []);
});

t.test('streams and consumers end at a redirect', async (t) => {
  const elsewhere = await serve(t, { status: 200, headers: json, body: '{}' });
  const front = await serve(t, { status: 302, headers: { location: elsewhere.url } });
  const client = createClient({ base_url: front.url, api_key: 'secret' });
  const refused = { name: 'Refused', code: 'REDIRECTED', message: elsewhere.url };
  await t.rejects(client.stream({ topics: ['all'] }).done, refused);
  await t.rejects(client.consume({ consumer: 'mine', member: 'm' }).next(), refused);
  t.same(elsewhere.seen, []);
});

t.test('what is no JSON of the service is no answer', async (t) => {
  const html = { 'content-type': 'text/html' };
  for (const mood of [
    { status: 200, headers: html, body: '<p>Log in</p>' },
    { status: 200, headers: html, body: '{}' },
    { status: 200, headers: json, body: '{' },
    { status: 200, headers: json, body: '' },
    { status: 200, body: '{}' },
    { status: 204 },
  ]) {
    const client = createClient({ base_url: (await serve(t, mood)).url, patience_ms: 0 });
    const error = await client.call('me').catch((error) => error);
    t.match(error, { name: 'NoAnswer', message: /no usable answer/, status: mood.status });
  }
  for (const type of ['Application/JSON; Charset=UTF-8', 'application/vnd.forum+json']) {
    const front = await serve(t, {
      status: 200,
      headers: { 'content-type': type },
      body: '{"a":1}',
    });
    t.match(await createClient({ base_url: front.url }).call('me'), { a: 1 }, type);
  }
  const empty = await serve(t, { status: 200, headers: { 'content-type': 'text/csv' }, body: '' });
  const csv = createClient({ base_url: empty.url, patience_ms: 0 });
  await t.rejects(csv.call('exportCalibration'), { name: 'NoAnswer' });
  t.equal(await csv.call('exportCalibration', { query: { format: 'csv' } }), '');
  const portal = await serve(t, { status: 200, headers: html, body: '<p>Log in</p>' });
  const away = createClient({ base_url: portal.url, patience_ms: 0 });
  await t.rejects(away.call('exportPredictions'), { name: 'NoAnswer' });
  const broken = await serve(t, { status: 403, headers: json, body: '{' });
  const outcome = await createClient({ base_url: broken.url }).attempt('me');
  t.match(outcome, { ok: false, status: 403, fault: { code: 'INVALID_REQUEST' } });
});

t.test('Retry-After is a number or a date, and the wait is never negative or long', async (t) => {
  const date = (ms: number): string => new Date(Date.now() + ms).toUTCString();
  const waits: readonly (readonly [string, number, number])[] = [
    ['2.5', 2_500, 2_500],
    [date(40_000), 35_000, 40_000],
    [date(-40_000), 0, 0],
    ['-5', 0, 0],
    ['soon', 0, 0],
    ['', 0, 0],
    ['99999999999', 3_600_000, 3_600_000],
    ['Infinity', 3_600_000, 3_600_000],
  ];
  for (const [text, least, most] of waits) {
    const ms = retryAfterMs(new Headers({ 'retry-after': text }));
    t.ok(ms >= least && ms <= most, `${text}: ${ms}`);
  }
  t.equal(retryAfterMs(new Headers()), 0);
});

t.test('lists of ids are asked for in parts, so that no address is long', async (t) => {
  const ids = await Promise.all(range(1, 3).map(() => makeOpenQuestion(app)));
  const unknown = range(1, 97).map((n) => `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`);
  const { client, front } = await start(t);
  const all = [ids[0], ...unknown, ids[1], ids[2]] as string[];
  const found = await client.call('listQuestions', { query: { ids: all, limit: 1 } });
  t.same(found.questions.map(({ id }) => id).sort(), [...ids].sort());
  t.match(found, { total: 3, next_cursor: null });
  t.ok(front.seen.length > 1);
  t.ok(front.seen.every(({ path }) => front.url.length + path.length < 1_200));
});

t.test('the log of many topics is read whole, and waited for', async (t) => {
  const ids = await Promise.all(range(1, 3).map(() => makeOpenQuestion(app)));
  const others = range(1, 27).map((n) => `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`);
  const topic = [ids[0], ...others, ids[1], ids[2]].map((id) => `question:${id}`);
  const { client, front, agent } = await start(t);
  const read = async (after: number, wait = 0) =>
    client.call('listEvents', { query: { topic, after, wait, limit: 2 } });
  const first = await until('two are in the log', async () => {
    const page = await read(0);
    return page.events.length === 2 && page;
  });
  t.equal(first.next, first.events[1]?.offset);
  const second = await until('the third', async () => {
    const page = await read(first.next);
    return page.events.length === 1 && page;
  });
  t.equal(second.next_cursor, null);
  const waiting = read(second.next, 30);
  await client.call('createComment', {
    params: { id: ids[2] ?? '' },
    body: { content: 'The published archive alone decides this question.' },
  });
  t.match(await waiting, { events: [{ event: 'comment.created', data: { user_id: agent.id } }] });
  t.ok(front.seen.every(({ path }) => front.url.length + path.length < 1_200));
});
