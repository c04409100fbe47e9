import { max_kept, read_life_ms } from '../../../src/features/notifications/events.js';
import { dropOldItems } from '../../../src/features/notifications/inbox-store.js';
import { type Notice, notify } from '../../../src/features/notifications/index.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';

/** A person's inbox: what happened to their agents, with a read state of the person's own. */

const app = await startApp(t, { roles: ['api'] });
const question_id = await makeOpenQuestion(app);

const tell = (agents: readonly Agent[], fields: Partial<Notice> = {}) =>
  app.sql.begin((tx) =>
    notify(
      tx,
      agents.map((agent) => ({
        agent_id: agent.id,
        kind: 'prediction.resolved' as const,
        cause: `resolution:${question_id}:1`,
        question_id,
        subject_id: makeId(),
        details: { net: 84 },
        at: new Date(),
        ...fields,
      })),
    ),
  );
const inbox = async (by: object, query = '') =>
  (await app.call('GET', `/api/me/inbox${query}`, by)).body;
const mark = (by: object, body: object) => app.call('POST', '/api/me/inbox/read', { ...by, body });

t.test('an owner is told what an agent is told, and the two read states are apart', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  await tell([agent]);
  const { items, unread } = await inbox(human);
  t.equal(unread, 1);
  t.match(items, [
    {
      type: 'prediction.resolved',
      message: new RegExp(`is resolved\\. ${agent.name} gained 84 points\\.$`),
      path: `/predictions/${items[0].subject_id}`,
      agent_id: agent.id,
      read: false,
    },
  ]);
  t.match(await mark(human, { ids: [items[0].id] }), { body: { marked: 1, unread: 0 } });
  t.match(await mark(human, { ids: [items[0].id] }), { body: { marked: 0 } });
  const own = await app.call('GET', '/api/me/notifications', agent);
  t.match(own.body, { total: 1, unread: 1 });
  t.match(await inbox(human, '?unread=true'), { total: 0 });
  t.match(await inbox(human, '?unread=false'), { total: 1 });
  t.match(await inbox(agent), { total: 0 }, "an agent's inbox has what it follows");
});

t.test('several agents with one result are one item, also in later batches', async (t) => {
  const human = await makeHuman(app);
  const agents = [
    await makeAgent(app, { human }),
    await makeAgent(app, { human }),
    await makeAgent(app, { human }),
  ];
  await tell(agents.slice(0, 2));
  t.match((await inbox(human)).items, [
    { agent_id: null, message: /resolved\. 2 of your agents gained 168 points in total\.$/ },
  ]);
  const first = await inbox(human);
  await mark(human, { until: first.items[0].id });
  await tell(agents.slice(2), { details: { net: -200 } });
  const { total, unread, items } = await inbox(human);
  t.match({ total, unread }, { total: 1, unread: 1 }, 'what was read is new again');
  t.match(items[0].message, /3 of your agents lost 32 points in total\.$/);
  await tell(agents);
  t.match((await inbox(human)).items[0].details, { agents: 3, net: -32 }, 'a repeat is ignored');
});

t.test('all items up to one are marked', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  for (const cause of ['a', 'b', 'c']) await tell([agent], { cause, kind: 'tier.changed' });
  const { items } = await inbox(human);
  t.match(await mark(human, { until: items[1].id }), { body: { marked: 2, unread: 1 } });
  t.equal((await mark(human, {})).status, 400);
  t.equal((await mark(human, { ids: [items[0].id], until: items[0].id })).status, 400);
});

t.test("nobody reads another's inbox, and a deleted account leaves none", async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  await tell([agent], { cause: makeId() });
  t.equal((await inbox(await makeHuman(app))).total, 0);
  t.equal((await app.call('GET', '/api/me/inbox')).status, 401);
  const { status } = await app.call('POST', '/api/me/account/delete', {
    ...human,
    body: { password: 'correct horse battery' },
  });
  t.equal(status, 200);
  const rows = await app.sql`select from inbox_items where agent_id = ${agent.id}`;
  t.equal(rows.length, 0);
});

t.test('old items that were read are dropped, and only the newest are kept', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  await tell([agent], { cause: 'old' });
  await tell([agent], { cause: 'new' });
  const { items } = await inbox(human);
  await mark(human, { ids: [items[1].id] });
  await dropOldItems(app.sql, new Date(Date.now() - read_life_ms), max_kept);
  t.equal((await inbox(human)).total, 2);
  await dropOldItems(app.sql, new Date(Date.now() + 1_000), max_kept);
  t.match((await inbox(human)).items, [{ id: items[0].id }]);
  await tell([agent], { cause: 'newest' });
  await dropOldItems(app.sql, new Date(0), 1);
  t.equal((await inbox(human)).total, 1);
});
