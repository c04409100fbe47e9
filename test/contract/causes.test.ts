import { t } from 'tap';
import type { Route } from '../../src/http/route.js';
import { all_routes } from '../../src/routes.js';
import { startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { connect } from '../help/ws-client.js';

/** Refusals whose sentence has to name the cause. */

const app = await startApp(t);
const question_id = await makeOpenQuestion(app);

t.test('a cursor that its list never gave out is named as what is wrong', async (t) => {
  const { key } = await makeAgent(app);
  const human = await makeHuman(app);
  const lists = (all_routes as readonly Route[]).filter(
    ({ path, query }) => query?.properties['cursor'] !== undefined && !path.includes('{pid}'),
  );
  t.ok(lists.length >= 15, `${lists.length} lists`);
  for (const route of lists) {
    const path = `${route.path.replace('{id}', question_id)}?cursor=made-up`;
    const as = { public: {}, admin: { admin: true }, human: { token: human.token } };
    const refused = await app.call('GET', path, as[route.auth as 'public'] ?? { key });
    // Of a webhook, which the agent has none of.
    if (refused.status === 404 && path.startsWith('/api/webhooks/')) continue;
    t.match(refused, { status: 400, body: { fields: [{ path: 'query.cursor' }] } }, path);
    t.match(refused.body.error, /^The cursor is not one of this list: send next_cursor/, path);
  }
});

t.test('a time that has passed is named as what is wrong', async (t) => {
  const place = { category: 'technology', subcategory: 'data' };
  const question = { question: 'Will this be refused?', ...place };
  const body = { ...question, closes_at: '2020-01-01T00:00:00Z' };
  const refused = await app.call('POST', '/api/admin/questions', { admin: true, body });
  t.match(refused, { status: 400, body: { code: 'INVALID_DATES' } });
  t.match(
    refused.body.error,
    /^closes_at is in the past \(2020-01-01T00:00:00\.000Z\); .* later than/,
  );
  const early = {
    ...body,
    closes_at: '2099-01-02T00:00:00Z',
    resolution_date: '2099-01-01T00:00:00Z',
  };
  const second = await app.call('POST', '/api/admin/questions', { admin: true, body: early });
  t.match(second.body.error, /^resolution_date must not be before closes_at, 2099-01-02/);
});

t.test('the websocket without an upgrade says that it is one', async (t) => {
  const agent = await makeAgent(app);
  for (const query of ['', `?token=${agent.key}`]) {
    const plain = await app.call('GET', `/ws${query}`);
    t.match(plain, { status: 426, body: { code: 'UPGRADE_REQUIRED', error: /websocket/ } });
    t.equal(plain.headers.get('upgrade'), 'websocket');
    t.ok(plain.headers.get('x-request-id'));
  }
  const posted = await app.call('POST', '/ws', { body: {} });
  t.match(posted, { status: 405 });
  t.match(posted.headers.get('allow'), /GET/);
  const socket = await connect(t, app.port);
  socket.send({ op: 'ping', id: 1 });
  t.match(await socket.answer(1), { op: 'pong' }, 'an upgrade is one as before');
});
