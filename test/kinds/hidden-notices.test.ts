import { startApp } from '../help/app.js';
import { predict } from '../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import type { Any } from './world.js';

/**
 * While content is hidden, notices that point to it are withdrawn. Each case was written from the
 * documentation alone.
 */

const app = await startApp(t, { roles: ['api', 'relay'], env: { LIMIT_IP: '100000' } });
const question_id = await makeOpenQuestion(app);
const newAgent = async () => makeAgent(app, { human: await makeHuman(app) });
const word = 'xylophone';

const read = async ({ key }: Agent): Promise<Any> =>
  (await app.call('GET', '/api/me/notifications', { key })).body;
const repliesOf = async (agent: Agent): Promise<readonly string[]> =>
  (await read(agent)).notifications
    .filter(({ type }: Any) => type === 'comment.reply')
    .map(({ subject_id }: Any) => subject_id);
const say = async ({ key }: Agent, path: string): Promise<string> => {
  const content = `The ${word} of agent ${Math.random()} sounds again in this quarter of the year.`;
  const { status, body } = await app.call('POST', path, { key, body: { content } });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body.comment.id;
};
const comment = (agent: Agent) => say(agent, `/api/questions/${question_id}/comments`);
const reply = (agent: Agent, to: string) => say(agent, `/api/comments/${to}/reply`);
const act = (verb: string, what: string) =>
  app.call('POST', `/api/admin/${what}/${verb}`, { admin: true, body: { reason: 'spam' } });
const untilNotified = (agent: Agent, id: string) =>
  until('the notice of the reply', async () => (await repliesOf(agent)).includes(id));

/** An author, another agent, and that agent's reply, about which the author got a notice. */
const makeReply = async () => {
  const [author, other] = [await newAgent(), await newAgent()];
  const id = await comment(author);
  const reply_id = await reply(other, id);
  await untilNotified(author, reply_id);
  return { author, other, comment_id: id, reply_id };
};

t.test('the notice of a reply, and its unread count, go when the reply is hidden', async (t) => {
  const { author, reply_id } = await makeReply();
  t.match(await read(author), { total: 1, unread: 1 });
  t.equal((await act('hide', `comments/${reply_id}`)).status, 200);
  const after = await read(author);
  t.match(after, { total: 0, unread: 0, notifications: [] });
  t.notOk(JSON.stringify(after).includes(reply_id));
});

t.test('a notice that was read goes as well, and the unread count stays', async (t) => {
  const { author, other, comment_id, reply_id } = await makeReply();
  const [{ id }] = (await read(author)).notifications;
  await app.call('POST', '/api/me/notifications/read', { key: author.key, body: { ids: [id] } });
  const second = await reply(other, comment_id);
  await untilNotified(author, second);
  await act('hide', `comments/${reply_id}`);
  t.match(await read(author), { total: 1, unread: 1, notifications: [{ subject_id: second }] });
});

t.test('the author of what is hidden keeps the notice about it', async (t) => {
  const { other, reply_id } = await makeReply();
  await act('hide', `comments/${reply_id}`);
  const { notifications } = await read(other);
  t.match(notifications, [{ type: 'content.hidden', subject_id: reply_id, read: false }]);
  t.match(JSON.stringify(notifications), /spam/);
});

t.test('what is restored is there once, as it was', async (t) => {
  const { author, other, reply_id } = await makeReply();
  const [{ id }] = (await read(author)).notifications;
  await app.call('POST', '/api/me/notifications/read', { key: author.key, body: { ids: [id] } });
  for (let turn = 0; turn < 3; turn += 1) {
    for (const verb of ['hide', 'hide', 'restore', 'restore']) {
      await act(verb, `comments/${reply_id}`);
    }
  }
  t.match(await read(author), {
    total: 1,
    notifications: [{ id, subject_id: reply_id, read: true }],
  });
  const kinds = (await read(other)).notifications.map(({ type }: Any) => type);
  t.ok(kinds.includes('content.restored'));
});

t.test('a hidden prediction withdraws the notices of replies to it', async (t) => {
  const [author, other] = [await newAgent(), await newAgent()];
  const place = await makeOpenQuestion(app);
  const pid = await predict(app, author, place, { prediction: true, confidence: 60 });
  const path = `/api/questions/${place}/comments`;
  const content = `A reply about the ${word} that this forecast rests on, with some doubts.`;
  const body = { content, prediction_id: pid };
  const { body: said } = await app.call('POST', path, { key: other.key, body });
  await untilNotified(author, said.comment.id);
  await act('hide', `predictions/${pid}`);
  t.same(await repliesOf(author), []);
  t.equal((await app.call('GET', `/api/predictions/${pid}`)).status, 404);
  await act('restore', `predictions/${pid}`);
  t.same(await repliesOf(author), [said.comment.id]);
});

t.test('replies below a hidden comment keep their notices', async (t) => {
  const { author, other, reply_id } = await makeReply();
  const third = await newAgent();
  const below = await reply(third, reply_id);
  await untilNotified(other, below);
  await act('hide', `comments/${reply_id}`);
  t.same(await repliesOf(author), []);
  t.same(await repliesOf(other), [below]);
  t.notOk(JSON.stringify(await read(other)).includes(word));
});

t.test('a suspension alone withdraws nothing', async (t) => {
  const { author, other, reply_id } = await makeReply();
  await act('suspend', `agents/${other.id}`);
  t.same(await repliesOf(author), [reply_id]);
});

t.test('the person who owns the agent, and the export, see the same', async (t) => {
  const human = await makeHuman(app);
  const author = await makeAgent(app, { human });
  const other = await newAgent();
  const reply_id = await reply(other, await comment(author));
  await untilNotified(author, reply_id);
  const exported = () => app.call('GET', '/api/me/export', { key: author.key });
  t.match(JSON.stringify((await exported()).body.notifications), reply_id);
  await act('hide', `comments/${reply_id}`);
  t.same((await exported()).body.notifications, []);
});

t.test('the log stays as it was, and tells of the hiding without the text', async (t) => {
  const { reply_id } = await makeReply();
  const find = async (name: string): Promise<Any> => {
    const path = `/api/events?topic=question:${question_id}&after=0&limit=100&events=${name}`;
    const { events } = (await app.call('GET', path)).body;
    return events.find(({ data }: Any) => data.comment_id === reply_id);
  };
  const created = await find('comment.created');
  await act('hide', `comments/${reply_id}`);
  const hidden = await until('the event', () => find('comment.hidden'));
  t.same(await find('comment.created'), created);
  t.ok(hidden.offset > created.offset);
  t.notOk(JSON.stringify(hidden).includes(word));
});

t.test('a notice that is hidden stays hidden when the next one comes', async (t) => {
  const { author, other, comment_id, reply_id } = await makeReply();
  await act('hide', `comments/${reply_id}`);
  const next = await reply(other, comment_id);
  await untilNotified(author, next);
  t.match(await read(author), { total: 1, unread: 1, notifications: [{ subject_id: next }] });
});
