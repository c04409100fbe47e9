import type { Route } from '../../src/http/route.js';
import { makeId } from '../../src/kit/ids.js';
import type { Answered, CallOptions } from '../help/app.js';
import { type Principal, refusalOf } from '../help/principals.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { connect } from '../help/ws-client.js';
import { findMismatches, lookAtAll, startMatrix, targetOf } from './matrix.js';

/** Calls every route as every kind of caller. Each route admits the caller or says why not. */

const { app, principals, question_id, routes } = await startMatrix(t);

const callAs = (principal: Principal, route: Route): Promise<Answered> =>
  app.call(route.method, targetOf(route, question_id, principal), {
    ...principal.send,
    ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { body: {} }),
  });

/** An answer without the parts that always differ. */
const bare = (answer: Answered | undefined): string =>
  JSON.stringify({ status: answer?.status, ...answer?.body, request_id: undefined });

/** Another user's objects, by the beginning of their paths. */
const makeForeignThings = async () => {
  const owner = await makeHuman(app);
  const agent = await makeAgent(app, { human: owner });
  const { token } = owner;
  const { body: listed } = await app.call('GET', '/api/me/sessions', { token });
  const [session] = listed.sessions as { id: string }[];
  const webhook = await app.call('POST', '/api/webhooks', {
    key: agent.key,
    body: { url: 'https://127.0.0.1:18443/hook', events: ['question.created'] },
  });
  if (webhook.status !== 201) throw new Error(JSON.stringify(webhook.body));
  const draft = await makeOpenQuestion(app, { publish: false });
  const [dispute] = await app.sql<{ id: string }[]>`
    insert into disputes
      (question_id, id, agent_id, revision, reason, evidence_urls, status, created_at)
    values (
      ${question_id}, ${makeId()}, ${agent.id}, 1, ${'It came a day late. '.repeat(3)}, '{}',
      'open', now()
    )
    returning id`;
  const comment = await app.call('POST', `/api/questions/${question_id}/comments`, {
    key: agent.key,
    body: { content },
  });
  const hidden = comment.body.comment.id;
  await app.sql`update comments set hidden_at = now() where id = ${hidden}`;
  return {
    '/api/webhooks/': webhook.body.id,
    '/api/me/agents/': agent.id,
    '/api/me/sessions/': session?.id ?? '',
    '/api/questions/': draft,
    // Everyone may read a dispute, but only its author may change it.
    '/api/disputes/{id}/withdraw': dispute?.id ?? '',
    '/api/comments/': hidden,
    // Everyone sees every agent, so a foreign one is one that does not exist.
    '/api/agents/': makeId(),
  };
};

const content = 'Whoever reads this should compare several independent sources.';
const bodies: Readonly<Record<string, unknown>> = {
  createComment: { content },
  replyToPrediction: { content },
  replyToComment: { content },
  updateWebhook: { active: false },
  updateMyAgent: { shows_operator: false },
  predict: { prediction: true, confidence: 60, reasoning: makeReasoning() },
  reportQuestion: { reason: 'spam' },
  reportComment: { reason: 'spam' },
  reportAgent: { reason: 'spam' },
  fileDispute: { reason: 'The report came a day after the deadline of the question.' },
};

t.test('a foreign subject answers as if it did not exist', async (t) => {
  const things = await makeForeignThings();
  const callers = principals.filter(
    ({ refused, may }) => refused === null && !may.includes('admin'),
  );
  const ask = (route: Route, id: string, send: CallOptions) =>
    app.call(route.method, route.path.replace('{id}', id), {
      ...send,
      ...(route.body === undefined ? {} : { body: bodies[route.id] ?? {} }),
    });
  const problems: string[] = [];
  let asked = 0;
  for (const route of routes.filter(
    ({ path, auth }) => path.includes('{id}') && auth !== 'admin',
  )) {
    // A follow is the caller's own, and its id names something that is public.
    if (route.path.startsWith('/api/me/follows/')) continue;
    const thing = Object.entries(things).find(([start]) => route.path.startsWith(start));
    if (thing === undefined) {
      if (route.auth !== 'public')
        problems.push(`${route.path}: name a foreign thing for this test`);
      continue;
    }
    for (const caller of callers) {
      if (refusalOf(route, caller) !== null) continue;
      asked += 1;
      const [foreign, absent, misshapen] = await Promise.all(
        [thing[1], makeId(), 'no-id'].map((id) => ask(route, id, caller.send)),
      );
      const say = (what: string) => problems.push(`${route.id} as ${caller.name}: ${what}`);
      if (foreign?.status !== 404) say(`${foreign?.status}`);
      if (bare(foreign) !== bare(absent)) say(`${bare(foreign)} is not ${bare(absent)}`);
      if (misshapen?.status !== 404) say(`${misshapen?.status} for what is no id`);
    }
  }
  t.same(problems, []);
  t.ok(asked >= 20, `${asked} pairs of route and caller`);
  const [left] = await app.sql`select count(*)::int as count from webhooks where active`;
  t.equal(left?.['count'], 1, 'and nothing was changed');
});

t.test('of several credentials each route uses the one it needs', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const both = { key: agent.key, admin: true };
  t.match((await app.call('GET', '/api/me', both)).body.user, { id: agent.id });
  t.match(await app.call('GET', '/api/admin/audit', both), { status: 200, body: { acts: [] } });
  const { token } = human;
  const agents = await app.call('GET', '/api/me/agents', { token, admin: true });
  t.match(agents.body.agents, [{ id: agent.id }]);
  t.equal((await app.call('GET', '/api/admin/audit', { token, admin: true })).status, 200);
  const all = { ...both, token };
  t.equal((await app.call('GET', '/api/admin/audit', all)).status, 200);
  const refused = { status: 400, body: { code: 'AMBIGUOUS_AUTH' } };
  for (const path of ['/api/me', '/api/questions', '/api/me/agents']) {
    t.match(await app.call('GET', path, { key: agent.key, token }), refused, path);
    t.match(await app.call('GET', path, all), refused, path);
  }
  const headers = { 'x-api-key': agent.key, 'x-admin-key': app.admin_key };
  const socket = await openCalls(t, app.port, headers);
  t.match((await socket.call('GET', '/api/me')).body.user, { id: agent.id });
  t.equal((await socket.call('GET', '/api/admin/audit')).status, 200);
  t.match(socket.frames[0], { op: 'welcome', as: 'agent' });
});

t.test('a credential in the place of another is refused with the right header', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const as_token = { status: 401, body: { code: 'INVALID_TOKEN', error: /X-API-Key header/ } };
  const as_key = { status: 401, body: { code: 'INVALID_API_KEY', error: /Authorization: Bearer/ } };
  for (const path of ['/api/me', '/api/me/agents', '/api/questions']) {
    t.match(await app.call('GET', path, { token: agent.key }), as_token, path);
    t.match(await app.call('GET', path, { key: human.token }), as_key, path);
    const bare_key = { headers: { authorization: agent.key } };
    t.match(await app.call('GET', path, bare_key), as_token, path);
  }
  const nobodys = { key: `hs_${'x'.repeat(43)}` };
  t.match(await app.call('GET', '/api/me', nobodys), as_key, 'by its form alone');
  t.match((await app.call('GET', '/api/me', { token: 'nonsense' })).body.error, /Log in again/);
  t.match(
    (await app.call('GET', '/api/me', { key: 'nonsense' })).body.error,
    /No agent has this key/,
  );
  const socket = await connect(t, app.port);
  socket.send({ op: 'auth', id: 1, api_key: human.token });
  t.match(await socket.answer(1), { code: 'INVALID_API_KEY', error: as_key.body.error });
});

// Runs last, because some of these calls revoke the credentials that they use.
for (const principal of principals) {
  t.test(`${principal.name}: every route admits or refuses as it says`, async (t) => {
    const call = (route: Route) => callAs(principal, route);
    t.same(await findMismatches(principal, routes, call), []);
  });
}

t.test('to anybody but an admin, an admin path is a path that does not exist', async (t) => {
  const differing: string[] = [];
  for (const principal of principals) {
    if (principal.may.includes('admin')) continue;
    const nowhere = bare(await app.call('GET', '/api/admin/nowhere', principal.send));
    const look = async (route: Route): Promise<void> => {
      const here = bare(await callAs(principal, route));
      if (here !== nowhere) differing.push(`${route.path} as ${principal.name}: ${here}`);
    };
    const of_admins = routes.filter(({ auth }) => auth === 'admin');
    await lookAtAll(of_admins, look);
  }
  t.same(differing, []);
});
