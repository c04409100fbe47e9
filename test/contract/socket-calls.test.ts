import type { Route } from '../../src/http/route.js';
import { makeId } from '../../src/kit/ids.js';
import { startApp } from '../help/app.js';
import type { Sent } from '../help/principals.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeHuman, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { findMismatches, startMatrix, targetOf } from './matrix.js';

/** Every route can be called over the socket, with the same contract as over HTTP. */

const { app, principals, question_id, routes } = await startMatrix(t);

const headersOf = ({ key, token, admin, headers }: Sent): Record<string, string> => ({
  ...headers,
  ...(key === undefined ? {} : { 'x-api-key': key }),
  ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  ...(admin === true ? { 'x-admin-key': app.admin_key } : {}),
});

/** The close code for a socket whose credentials are refused. */
const close_codes: Readonly<Record<string, number>> = { ACCOUNT_SUSPENDED: 4003 };

for (const principal of principals) {
  const { name, send, refused } = principal;
  t.test(`${name}: every call is admitted or refused as its route says`, async (t) => {
    const socket = await openCalls(t, app.port, headersOf(send));
    if (refused !== null && send.query === undefined) {
      t.equal(await socket.closed, close_codes[refused] ?? 4001);
      t.match(socket.frames, [{ op: 'error', code: refused }]);
      return;
    }
    const call = (route: Route) =>
      socket.call(
        route.method,
        targetOf(route, question_id, principal),
        route.method === 'GET' || route.method === 'DELETE' ? {} : { body: {} },
      );
    t.same(await findMismatches(principal, routes, call), []);
  });
}

const predict = (id: string): string => `/api/questions/${id}/predict`;

t.test('a repeat with the same key gets the first answer over either transport', async (t) => {
  const human = await makeHuman(app);
  for (const first_transport of ['http', 'socket'] as const) {
    const agent = await makeAgent(app, { human });
    const socket = await openCalls(t, app.port, { 'x-api-key': agent.key });
    const headers = { 'idempotency-key': makeId() };
    // Indented, to show that the exact text from the client counts.
    const forecast = { prediction: true, confidence: 60, reasoning: makeReasoning() };
    const text = JSON.stringify(forecast, null, 1);
    const overHttp = (body: string) =>
      app.call('POST', predict(question_id), { key: agent.key, headers, body });
    const overSocket = async (body: string) => {
      const id = socket.nextId();
      const route = JSON.stringify(`POST ${predict(question_id)}`);
      const sent = JSON.stringify(headers);
      const frame = `{"op":"call","id":${id},"route":${route},"headers":${sent},"body":${body}}`;
      return socket.ask(frame, id);
    };
    const [http, reply] =
      first_transport === 'http'
        ? [await overHttp(text), await overSocket(text)]
        : await overSocket(text).then(async (frame) => [await overHttp(text), frame] as const);
    t.equal(http.status, 201);
    t.match(reply, { op: 'reply', status: 201 });
    t.same(reply['body'], http.body, `first over ${first_transport}`);
    const replayed = [http.headers.get('idempotency-replayed'), reply['headers']];
    if (first_transport === 'http') t.match(replayed, [null, { 'idempotency-replayed': 'true' }]);
    else t.equal(replayed[0], 'true');
    const other = JSON.stringify({ ...forecast, confidence: 61 });
    t.equal((await overHttp(other)).body.code, 'IDEMPOTENCY_MISMATCH');
    t.match(await overSocket(other), { body: { code: 'IDEMPOTENCY_MISMATCH' } });
    const [row] = await app.sql`
      select count(*)::int as count from predictions where agent_id = ${agent.id}`;
    t.equal(row?.['count'], 1);
  }
});

t.test('who calls is asked each time: what changes about an agent holds at once', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app);
  const socket = await openCalls(t, app.port, { 'x-api-key': agent.key });
  const body = { prediction: true, confidence: 60, reasoning: makeReasoning() };
  const before = await socket.call('POST', predict(question_id), { body });
  t.match(before, { status: 403, body: { code: 'AGENT_NOT_LINKED' } });
  const linking = { token: human.token, body: { api_key: agent.key } };
  t.equal((await app.call('POST', '/api/me/agents', linking)).status, 200);
  t.equal((await socket.call('POST', predict(question_id), { body })).status, 201);
  const rotated = await socket.call('POST', '/api/me/rotate-key');
  t.match(rotated, { status: 200, body: { api_key: /^sk_/ } });
  t.equal(await socket.closed, 4001, 'the key it was opened with is gone');
});

t.test('limits count requests and calls together', async (t) => {
  const few = await startApp(t, { roles: ['api'], env: { LIMIT_KEY: '5' } });
  const agent = await makeAgent(few);
  const socket = await openCalls(t, few.port, { 'x-api-key': agent.key });
  const asked = [
    () => few.call('GET', '/api/me', { key: agent.key }),
    () => socket.call('GET', '/api/me'),
  ];
  const lefts: (string | null)[] = [];
  for (let n = 0; n < 5; n += 1) {
    const answer = await asked[n % 2]?.();
    t.equal(answer?.status, 200);
    lefts.push(/"key";r=(\d+)/.exec(answer?.headers.get('ratelimit') ?? '')?.[1] ?? null);
  }
  t.strictSame(lefts, ['4', '3', '2', '1', '0']);
  for (const ask of asked) {
    const refused = await ask();
    t.match(refused, { status: 429, body: { code: 'RATE_LIMITED' } });
    t.match(refused.headers.get('retry-after'), /^[1-9]\d*$/);
  }
});
