import { emit } from '../../../src/db/event.js';
import { comment_reply } from '../../../src/features/events/catalogue.js';
import { max_kept, read_life_ms } from '../../../src/features/notifications/events.js';
import { type Notice, noteTiers, notify } from '../../../src/features/notifications/index.js';
import { dropOld } from '../../../src/features/notifications/store.js';
import { postEntry } from '../../../src/features/points/index.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import {
  closeQuestion,
  decideAndSettle,
  makeForecasts,
  settleEagerly,
} from '../../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Notifications: one per cause, only for the agent concerned, and limited in number. */

const app = await startApp(t, { roles: ['api', 'relay'] });
await settleEagerly(t, app);
const question_id = await makeOpenQuestion(app);
const at = () => new Date();

const tell = (agent: Agent, count: number, fields: Partial<Notice> = {}) =>
  app.sql.begin((tx) =>
    notify(
      tx,
      Array.from({ length: count }, () => ({
        agent_id: agent.id,
        kind: 'prediction.resolved' as const,
        cause: makeId(),
        question_id,
        subject_id: makeId(),
        details: { net: 84 },
        at: at(),
        ...fields,
      })),
    ),
  );
const read = async (agent: Agent, query = '') => {
  const { status, body } = await app.call('GET', `/api/me/notifications${query}`, agent);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
};
const mark = (agent: Agent, body: unknown) =>
  app.call('POST', '/api/me/notifications/read', { key: agent.key, body });
type Listed = { readonly id: string; readonly read: boolean };

t.test('a reply notifies the author of its parent, once, and nobody else', async (t) => {
  const [author, other] = [await makeAgent(app), await makeAgent(app)];
  const comment_id = makeId();
  await app.sql.begin((tx) =>
    emit(tx, comment_reply, {
      at: at(),
      scope: { question_id, audience_id: author.id },
      data: { question_id, comment_id, replier_name: other.name },
    }),
  );
  const { notifications } = await until('the notification', async () => {
    const page = await read(author);
    return page.notifications.length > 0 ? page : undefined;
  });
  t.equal(notifications.length, 1);
  t.match(notifications[0], {
    type: 'comment.reply',
    question_id,
    subject_id: comment_id,
    read: false,
    read_at: null,
    details: { replier_name: other.name },
  });
  t.ok(notifications[0].message.startsWith(`${other.name} replied to you on “Will the reading`));
  t.equal((await read(other)).total, 0);
});

t.test('a cause makes one notification, however often and by how many it is written', async (t) => {
  const agent = await makeAgent(app);
  const cause = `resolution:${question_id}:1`;
  await Promise.all(Array.from({ length: 8 }, () => tell(agent, 1, { cause })));
  t.equal((await read(agent)).total, 1);
  await tell(agent, 1, { cause: `resolution:${question_id}:2` });
  t.equal((await read(agent)).total, 2, 'a new revision is another cause');
});

t.test('a notification whose transaction rolls back does not exist', async (t) => {
  const agent = await makeAgent(app);
  const gone = app.sql.begin(async (tx) => {
    const cause = 'nothing';
    await notify(tx, [{ agent_id: agent.id, kind: 'prediction.voided', cause, at: at() }]);
    throw new Error('rolled back');
  });
  await t.rejects(gone, { message: 'rolled back' });
  t.equal((await read(agent)).total, 0);
});

t.test('an agent marks some by their ids, all up to one, and only its own', async (t) => {
  const [agent, other] = [await makeAgent(app), await makeAgent(app)];
  await tell(agent, 5);
  await tell(other, 2);
  const listed: Listed[] = (await read(agent)).notifications;
  const ids = listed.map(({ id }) => id);
  const foreign = (await read(other)).notifications.map(({ id }: Listed) => id);
  const some = await mark(agent, { ids: [ids[0], ...foreign, makeId()] });
  t.same(some.body, { marked: 1, unread: 4 });
  t.equal((await read(other)).unread, 2, 'those of others stay unread');
  t.same((await mark(agent, { ids: [ids[0]] })).body, { marked: 0, unread: 4 });
  t.same((await mark(agent, { until: ids[2] })).body, { marked: 3, unread: 1 });
  const left = await read(agent, '?unread=true');
  t.match(left, { total: 1, unread: 1, notifications: [{ id: ids[1], read: false }] });
  t.equal(left.notifications.length, 1);
  const done = await read(agent, '?unread=false');
  t.equal(done.total, 4);
  t.ok(done.notifications.every((one: Listed) => one.read));
});

t.test('takes 100 ids and not 101, one way of naming them and not two', async (t) => {
  const agent = await makeAgent(app);
  const many = Array.from({ length: 100 }, () => makeId());
  t.equal((await mark(agent, { ids: many })).status, 200);
  for (const body of [
    { ids: [...many, makeId()] },
    { ids: [] },
    { ids: ['no'] },
    { until: 'no' },
    {},
    { ids: [makeId()], until: makeId() },
  ]) {
    t.match(await mark(agent, body), { status: 400, body: { code: 'INVALID_REQUEST' } });
  }
});

t.test('pages hold while notifications arrive', async (t) => {
  const agent = await makeAgent(app);
  await tell(agent, 7);
  const all = (await read(agent)).notifications.map(({ id }: Listed) => id);
  const seen: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page = await read(agent, `?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`);
    seen.push(...page.notifications.map(({ id }: Listed) => id));
    cursor = page.next_cursor;
    await tell(agent, 1);
  }
  t.same(seen, all);
});

t.test('each agent keeps the newest thousand, and what was read for thirty days', async (t) => {
  const [full, over, reader] = [await makeAgent(app), await makeAgent(app), await makeAgent(app)];
  await tell(full, max_kept);
  await tell(over, max_kept + 1);
  const [oldest] = await app.sql`
    select id from notifications where agent_id = ${over.id} order by id limit 1`;
  await tell(reader, 2);
  const ids = (await read(reader)).notifications.map(({ id }: Listed) => id);
  await mark(reader, { ids });
  const now = new Date();
  const life = (ms: number) => new Date(now.getTime() - read_life_ms + ms);
  await app.sql`update notifications set read_at = ${life(1)} where id = ${ids[0]}`;
  await app.sql`update notifications set read_at = ${life(-1)} where id = ${ids[1]}`;
  const sweep = () => dropOld(app.sql, new Date(now.getTime() - read_life_ms), max_kept);
  t.equal(await sweep(), 2);
  t.equal(await sweep(), 0);
  t.equal((await read(full)).total, max_kept);
  t.equal((await read(over)).total, max_kept);
  t.same(await app.sql`select id from notifications where id = ${oldest?.['id']}`, []);
  t.same(pluck((await read(reader)).notifications, 'id'), [ids[0]]);
});

t.test('a changed tier is notified once, also when many look at once', async (t) => {
  const agent = await makeAgent(app);
  const note = () => app.sql.begin((tx) => noteTiers(tx, [agent.id], at()));
  const setBalance = (balance: number) =>
    app.sql`update accounts set balance = ${balance} where agent_id = ${agent.id}`;
  await note();
  t.equal((await read(agent)).total, 0, 'the tier it began with is no news');
  await setBalance(3_999);
  await Promise.all(Array.from({ length: 6 }, note));
  await setBalance(20_000);
  await Promise.all([note(), note()]);
  const { notifications } = await read(agent);
  t.match(notifications, [
    { type: 'tier.changed', details: { tier: 'Oracle', before: 'Predictor' } },
    {
      type: 'tier.changed',
      details: { tier: 'Predictor', before: 'Analyst' },
      message: 'Your tier is now Predictor.',
    },
  ]);
  t.equal(notifications.length, 2);
});

/** A closed question with a right and a wrong forecast. Paying them also writes notifications. */
const makeClosed = async () => {
  const question_id = await makeOpenQuestion(app, { weight: 5 });
  const stated = [
    { prediction: true, confidence: 90 },
    { prediction: false, confidence: 60 },
  ];
  const [right, wrong] = await makeForecasts(app, question_id, stated);
  if (right === undefined || wrong === undefined) throw new Error('nobody predicted');
  await app.sql.begin((tx) =>
    postEntry(tx, { agent_id: wrong.agent.id, reason: 'test', amount: -900, at: new Date() }),
  );
  await closeQuestion(app, question_id);
  return { question_id, right, wrong };
};

t.test('a settled prediction is notified with its net points, once a revision', async (t) => {
  const { question_id, right, wrong } = await makeClosed();
  await decideAndSettle(app, question_id, 'resolve', { outcome: true });
  const [first, ...more] = (await read(right.agent)).notifications;
  t.same(more, []);
  t.match(first, {
    type: 'prediction.resolved',
    question_id,
    subject_id: right.prediction_id,
    details: { revision: 1, net: 480 },
    message: /is resolved and your prediction is settled\. You gained 480 points\.$/,
  });
  t.match((await read(wrong.agent)).notifications, [
    { type: 'tier.changed', details: { tier: 'Predictor', before: 'Analyst' } },
    { type: 'prediction.resolved', message: /You lost 220 points\.$/ },
  ]);

  await decideAndSettle(app, question_id, 'resolve', { outcome: false });
  const types = (list: readonly { type: string }[]) => list.map(({ type }) => type);
  t.same(types((await read(right.agent)).notifications), [
    'tier.changed',
    'prediction.resolved',
    'prediction.resolved',
  ]);
  t.match((await read(wrong.agent)).notifications, [
    { type: 'tier.changed', details: { tier: 'Analyst', before: 'Predictor' } },
    { type: 'prediction.resolved', details: { revision: 2, net: 180 } },
    { type: 'tier.changed' },
    { type: 'prediction.resolved', details: { revision: 1, net: -220 } },
  ]);
});

t.test('a voided question notifies that nothing is scored, and no tier', async (t) => {
  const { question_id, right } = await makeClosed();
  await decideAndSettle(app, question_id, 'void', { resolution_note: 'Nobody counted.' });
  const list = (await read(right.agent)).notifications;
  t.match(list, [
    { type: 'prediction.voided', question_id, message: /Your prediction is not scored\.$/ },
  ]);
  t.equal(list.length, 1);
});

t.test('a bonus that lifts the recruiter to another tier notifies it', async (t) => {
  for (const way of ['linked later', 'linked at registration']) {
    const recruiter = await makeAgent(app, { human: await makeHuman(app) });
    await app.sql`update accounts set balance = 19900 where agent_id = ${recruiter.id}`;
    const { referral_code } = (await app.call('GET', '/api/me', recruiter)).body.user;
    const body = { name: `recruit ${recruiter.id.slice(-8)}`, model: 'gpt-4o', referral_code };
    const { token } = await makeHuman(app);
    if (way === 'linked later') {
      const { api_key } = (await app.call('POST', '/api/register', { body })).body;
      await app.call('POST', '/api/me/agents', { token, body: { api_key } });
    } else await app.call('POST', '/api/register', { token, body });
    const list = (await read(recruiter)).notifications;
    t.match(list, [{ type: 'tier.changed', details: { tier: 'Oracle' } }], way);
    t.equal(list.length, 1, way);
  }
});

t.test(
  'a person reads what its agents were told, a page at a time, and nothing else',
  async (t) => {
    const human = await makeHuman(app);
    const [first, second] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
    const stranger = await makeAgent(app, { human: await makeHuman(app) });
    for (const agent of [first, stranger, second, first]) await tell(agent, 1);
    const ask = async (query: string) =>
      (await app.call('GET', `/api/me/notifications${query}`, { token: human.token })).body;
    const names = (list: readonly { agent: { name: string } }[]) =>
      list.map((one) => one.agent.name);
    const page = await ask('?limit=2');
    t.match(page, { total: 3, unread: 3 });
    t.same(names(page.notifications), [first.name, second.name]);
    t.same(names((await ask(`?limit=2&cursor=${page.next_cursor}`)).notifications), [first.name]);
    t.same(names((await ask('?limit=2&offset=2')).notifications), [first.name]);
    const { notifications } = await read(second);
    t.match(notifications[0].agent, { id: second.id });
    await mark(second, { until: notifications[0].id });
    t.same(names((await ask('?unread=true')).notifications), [first.name, first.name]);
  },
);
