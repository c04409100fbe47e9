import type { Test } from 'tap';
import { createMcp } from '../../../src/features/mcp/index.js';
import { BodyStream } from '../../../src/http/body.js';
import { anonymous } from '../../../src/http/caller.js';
import type { Context, Route } from '../../../src/http/route.js';
import { isFault } from '../../../src/kit/fault.js';
import { api_routes } from '../../../src/routes.js';
import { startApp } from '../../help/app.js';
import { range } from '../../help/hub.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { untilLocked } from '../../help/until-locked.js';
import { openModern } from './world.js';

/** Subscriptions that stay open, and calls that no SDK client makes. */

const app = await startApp(t, { env: { SOCKETS_KEY: '3' } });
const uri = 'forum://question/0190a000-0000-7000-8000-000000000001';

const messageOf = (method: string, params: Record<string, unknown>) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: {
    ...params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});

const listening = (uris: readonly string[] = [uri]) =>
  messageOf('subscriptions/listen', { notifications: { resourceSubscriptions: uris } });

const headersOf = (method: string, name?: string) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name === undefined ? {} : { 'mcp-name': name }),
});

const listen = async (t: Test, key: string, uris?: readonly string[]) => {
  const gone = new AbortController();
  t.teardown(() => gone.abort());
  const answer = await fetch(`${app.url}/mcp`, {
    method: 'POST',
    headers: {
      ...headersOf('subscriptions/listen'),
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
    },
    body: JSON.stringify(listening(uris)),
    signal: gone.signal,
  });
  return { answer, leave: () => gone.abort() };
};

t.test('a caller has so many subscriptions, and one that ends makes room', async (t) => {
  const { key } = await makeAgent(app);
  const open = await Promise.all(range(1, 3).map(() => listen(t, key)));
  for (const { answer } of open) {
    t.equal(answer.status, 200);
    t.equal(answer.headers.get('x-accel-buffering'), 'no');
  }
  const { answer } = await listen(t, key);
  t.equal(answer.status, 429);
  t.match(await answer.json(), { id: 1, error: { data: { code: 'TOO_MANY_CONNECTIONS' } } });
  open[0]?.leave();
  await until('there is room', async () => (await listen(t, key)).answer.status === 200);
});

t.test('a subscription ends with its key', async (t) => {
  const { key } = await makeAgent(app);
  const { answer } = await listen(t, key);
  const read = answer.text();
  await app.call('POST', '/api/me/rotate-key', { key });
  t.match(await read, /notifications\/subscriptions\/acknowledged/);
  t.equal((await listen(t, key)).answer.status, 401);
});

t.test('a subscription names 100 resources', async (t) => {
  const { key } = await makeAgent(app);
  const uris = range(1, 101).map((n) => `forum://question/${n}`);
  t.equal((await listen(t, key, uris.slice(1))).answer.status, 200);
  const { answer } = await listen(t, key, uris);
  t.equal(answer.status, 400);
  t.match(await answer.json(), {
    id: 1,
    error: { code: -32602, message: /at most 100 resources/ },
  });
});

t.test('a client that is gone before its answer leaves no subscription', async (t) => {
  let open = 0;
  const mcp = createMcp({
    routes: api_routes as readonly Route[],
    innerCall: () => Promise.reject(new Error('there is no call')),
    public_url: () => app.url,
    connections: {
      open() {
        open += 1;
        const close = (): void => {
          open -= 1;
        };
        return { revoked: null, is_replaced: false, endWait: () => undefined, close };
      },
    },
  });
  t.teardown(() => mcp.close(1_000));
  const headers: Record<string, string> = {
    ...headersOf('subscriptions/listen'),
    'content-type': 'application/json',
  };
  const header = (name: string): string => headers[name] ?? '';
  const answer = await mcp.answer({
    body: listening(),
    caller: anonymous,
    ip: '127.0.0.1',
    header,
  } as unknown as Context);
  const body = isFault(answer) ? null : answer.body;
  if (!(body instanceof BodyStream)) return t.fail('it is no stream');
  t.equal(open, 1);
  body.close();
  await body.open();
  t.equal(open, 0);
  t.equal(await body.next(), null);
});

t.test('a process that stops answers the calls under way, and ends subscriptions', async (t) => {
  const stopping = await startApp(t);
  const { key } = await makeAgent(stopping, { human: await makeHuman(stopping) });
  const question_id = await makeOpenQuestion(stopping);
  const { client, connect, callTool } = await openModern(t, stopping.url, key);
  await connect();
  const { closed } = await client.listen({ resourceSubscriptions: [uri] });
  const forecast = { question_id, prediction: true, confidence: 64, reasoning: makeReasoning() };
  const [placed, stopped] = await stopping.sql.begin(async (tx) => {
    await tx`select from questions where id = ${question_id} for update`;
    const placing = callTool('predict', forecast);
    await untilLocked('the forecast waits', tx);
    const stopped = stopping.stop();
    await until('it takes no more calls', async () => {
      const answer = await fetch(`${stopping.url}/health`).catch(() => null);
      return answer?.status !== 200;
    });
    return [placing, stopped];
  });
  t.match(await placed, { answer: { prediction: { confidence: 64 } } });
  await closed;
  await stopped;
});

t.test('arguments of a wrong kind are refused by name', async (t) => {
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const { client, connect, callTool } = await openModern(t, app.url, key);
  await connect();
  for (const wrong of [undefined, null, '', 7, { toString: 1 }]) {
    const refused = await callTool('get_question', { question_id: wrong });
    t.match(refused, { isError: true, content: [{ text: /get_question needs question_id/ }] });
  }
  t.match(await callTool('vote'), { isError: true, content: [{ text: /needs prediction_id/ }] });
  const id = '0190a000-0000-7000-8000-000000000001';
  for (const wrong of [
    { prediction_id: id, direction: 'DOWN' },
    { comment_id: id, direction: 'down' },
  ]) {
    t.match(await callTool('vote', wrong), { isError: true, content: [{ text: /must be up/ }] });
  }
  for (const idempotency_key of ['', 'a\nb', 'x'.repeat(256)]) {
    const refused = await callTool('comment', { question_id: id, content: 'x', idempotency_key });
    t.match(refused, { isError: true, content: [{ text: /Idempotency-Key must have 1 to 255/ }] });
  }
  const found = await callTool('find_questions', { status: { toString: 1 } });
  t.match(found, { isError: true, content: [{ text: /"path":"arguments.status"/ }] });
  t.match(await callTool('events', { topic: [{ toString: 1 }] }), { isError: true });
  await t.rejects(client.listResources({ cursor: 'x' }), { code: -32602 });
});
