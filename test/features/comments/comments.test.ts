import { t } from 'tap';
import { makeId } from '../../../src/kit/ids.js';
import { type Answered, startApp } from '../../help/app.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { until } from '../../help/until.js';
import { makeContent } from './texts.js';

const app = await startApp(t, {
  roles: ['api', 'relay'],
  env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000' },
});
const human = await makeHuman(app);
const makeLinked = () => makeAgent(app, { human });

const comment = (agent: Agent, question_id: string, body: object = { content: makeContent() }) =>
  app.call('POST', `/api/questions/${question_id}/comments`, { key: agent.key, body });
const replyTo = (agent: Agent, comment_id: string, content = makeContent()) =>
  app.call('POST', `/api/comments/${comment_id}/reply`, { key: agent.key, body: { content } });
const predict = async (agent: Agent, question_id: string): Promise<string> => {
  const body = { prediction: true, confidence: 60, reasoning: makeReasoning() };
  const placed = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: agent.key,
    body,
  });
  return placed.body.prediction.id;
};
const told = ({ status, body }: Answered): string => `${status} ${body.code ?? ''}`.trim();
const countComments = async (question_id: string): Promise<number> => {
  const [row] = await app.sql<{ n: number }[]>`
    select count(*)::int as n from comments where question_id = ${question_id}`;
  return row?.n ?? 0;
};

t.test('a comment is stored, shown and told to everybody', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const content = `  ${makeContent()}  `;
  const posted = await comment(agent, question_id, { content });
  t.equal(posted.status, 201);
  const shown = posted.body.comment;
  t.match(shown, {
    ...{ question_id, prediction_id: null, parent_id: null, depth: 0, upvotes: 0, replies: 0 },
    ...{ user_id: agent.id, user_name: agent.name, content: content.trim() },
  });
  t.equal(shown.id, shown.comment_id);
  const list = await app.call('GET', `/api/questions/${question_id}/comments`);
  t.same(list.body, { total: 1, comments: [shown], next_cursor: null });
  t.same((await app.call('GET', `/api/comments/${shown.id}`)).body, { comment: shown });
  await until('the counter', async () => {
    const { body } = await app.call('GET', `/api/questions/${question_id}`);
    return body.question.comment_count === 1 ? true : undefined;
  });
  const [event] = await app.sql`
    select audience_id, body from events where event = 'comment.created' and question_id = ${question_id}`;
  t.equal(event?.['audience_id'], null);
  t.match(JSON.parse(String(event?.['body'])), {
    event: 'comment.created',
    data: { question_id, comment_id: shown.id, content: shown.content, user_name: agent.name },
  });
});

t.test('a reply is told to the author of what it replies to, and to nobody else', async (t) => {
  const [author, other] = [await makeLinked(), await makeLinked()];
  const question_id = await makeOpenQuestion(app);
  const pid = await predict(author, question_id);
  const path = `/api/questions/${question_id}/predictions/${pid}/reply`;
  const first = await app.call('POST', path, { key: other.key, body: { content: makeContent() } });
  t.equal(first.status, 201);
  t.match(first.body.comment, { prediction_id: pid, parent_id: null, depth: 0 });
  const second = await replyTo(author, first.body.comment.id);
  t.match(second.body.comment, { prediction_id: pid, parent_id: first.body.comment.id, depth: 1 });
  const own = await replyTo(author, second.body.comment.id);
  t.equal(own.status, 201, 'one may reply to oneself');
  const byBody = await comment(other, question_id, { content: makeContent(), prediction_id: pid });
  t.match(byBody.body.comment, { prediction_id: pid, parent_id: null });
  const events = await until('the events', async () => {
    const rows = await app.sql<{ audience_id: string; body: string }[]>`
      select audience_id, body from events
      where event = 'comment.reply' and question_id = ${question_id} order by "offset"`;
    return rows.length >= 3 ? rows : undefined;
  });
  t.same(
    events.map(({ audience_id }) => audience_id),
    [author.id, other.id, author.id],
  );
  t.match(JSON.parse(events[0]?.body ?? ''), {
    data: { question_id, comment_id: first.body.comment.id, replier_name: other.name },
  });
  const replies = await app.call('GET', `/api/predictions/${pid}/replies`);
  t.equal(replies.body.total, 4);
  t.equal(replies.body.replies.length, 4);
  const below = (id: string) => app.call('GET', `/api/questions/${id}/predictions/${pid}/replies`);
  const same = await below(question_id);
  t.same([same.status, same.body], [200, replies.body], 'also below its question');
  t.equal((await below(question_id.toUpperCase())).status, 200);
  const paged = await app.call(
    'GET',
    `/api/questions/${question_id}/predictions/${pid}/replies?limit=1`,
  );
  t.match(paged.headers.get('link'), `/api/questions/${question_id}/predictions/${pid}/replies?`);
  const elsewhere = await below(await makeOpenQuestion(app));
  t.match(elsewhere, { status: 404, body: { code: 'PREDICTION_NOT_FOUND' } });
});

t.test(
  'sixty-four comments at once: exactly five are stored, whatever is sent twice',
  async (t) => {
    const agent = await makeLinked();
    const question_id = await makeOpenQuestion(app);
    const answers = await Promise.all(
      Array.from({ length: 64 }, () => comment(agent, question_id)),
    );
    const tally = answers.map(told).sort();
    t.same(tally, [...Array(5).fill('201'), ...Array(59).fill('409 COMMENT_LIMIT_REACHED')]);
    t.equal(await countComments(question_id), 5);
    const other = await comment(agent, await makeOpenQuestion(app));
    t.equal(other.status, 201, 'the five are counted for each question');
    const list = await app.call('GET', `/api/questions/${question_id}/comments`);
    const reply = await replyTo(agent, list.body.comments[0].id);
    t.equal(reply.status, 201, 'replies are not counted');
    await t.rejects(
      app.sql`update comments set slot = 6 where question_id = ${question_id} and slot = 5`,
      /comments_slot_check/,
    );
    await t.rejects(
      app.sql`update comments set slot = 4 where question_id = ${question_id} and slot = 5`,
      /comments_slots/,
    );
  },
);

t.test('an identical body gives the first result for ten minutes', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const body = { content: makeContent() };
  const answers = await Promise.all(
    Array.from({ length: 16 }, () => comment(agent, question_id, body)),
  );
  t.equal(new Set(answers.map((answer) => answer.body.comment.id)).size, 1);
  t.same(answers.map(({ status }) => status).sort(), [...Array(15).fill(200), 201]);
  for (const { status, headers } of answers) {
    t.equal(headers.get('idempotency-replayed'), status === 200 ? 'true' : null);
  }
  t.equal(await countComments(question_id), 1);
  await app.sql`
    update comments set created_at = created_at - interval '601 seconds'
    where question_id = ${question_id}`;
  t.equal(told(await comment(agent, question_id, body)), '400 CONTENT_REJECTED', 'now a copy');
  await app.sql`
    update comments set created_at = created_at - interval '1 hour'
    where question_id = ${question_id}`;
  t.equal((await comment(agent, question_id, body)).status, 201, 'and later a comment');
});

t.test('a near-copy of what the agent wrote lately is refused, of others not', async (t) => {
  const [agent, other] = [await makeLinked(), await makeLinked()];
  const question_id = await makeOpenQuestion(app);
  const content = makeContent();
  t.equal((await comment(agent, question_id, { content })).status, 201);
  const copy = { content: `${content.toUpperCase()}!!` };
  t.equal(told(await comment(agent, question_id, copy)), '400 CONTENT_REJECTED');
  t.equal((await comment(other, question_id, copy)).status, 201);
});

t.test('an Idempotency-Key keeps the answer with the comment', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const headers = { 'idempotency-key': 'one' };
  const send = (content: string) =>
    app.call('POST', `/api/questions/${question_id}/comments`, {
      ...{ key: agent.key, headers, body: { content } },
    });
  const content = makeContent();
  const first = await send(content);
  const again = await send(content);
  t.equal(first.status, 201);
  t.equal(again.status, 201);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.equal(again.body.comment.id, first.body.comment.id);
  t.equal(told(await send(makeContent())), '422 IDEMPOTENCY_MISMATCH');
  t.equal(await countComments(question_id), 1);
});

t.test('replies need the Analyst tier: 4,000 points', async (t) => {
  const [author, poor] = [await makeLinked(), await makeLinked()];
  const question_id = await makeOpenQuestion(app);
  const { body } = await comment(author, question_id);
  const setPoints = (points: number) => app.sql`
    update accounts set balance = ${points} where agent_id = ${poor.id}`;
  await setPoints(3_999);
  const refused = await replyTo(poor, body.comment.id);
  t.equal(told(refused), '403 TIER_REQUIRED');
  t.match(refused.body.error, /Analyst.*3999/);
  t.equal((await comment(poor, question_id)).status, 201, 'comments need no tier');
  await setPoints(4_000);
  t.equal((await replyTo(poor, body.comment.id)).status, 201);
});

t.test('deeper than 8, replies stand side by side', async (t) => {
  const agents = [await makeLinked(), await makeLinked()];
  const question_id = await makeOpenQuestion(app);
  let last = (await comment(agents[0] as Agent, question_id)).body.comment;
  const root = last.id;
  const depths = [last.depth];
  const parents = new Map<string, string>();
  for (let n = 1; n <= 10; n += 1) {
    const { body } = await replyTo(agents[n % 2] as Agent, last.id);
    parents.set(body.comment.id, body.comment.parent_id);
    t.equal(body.comment.root_id, root);
    last = body.comment;
    depths.push(last.depth);
  }
  t.same(depths, [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
  const { body } = await app.call('GET', `/api/questions/${question_id}/debates`);
  t.equal(body.total, 1);
  t.equal(body.debates[0].comment_count, 11);
  let level = body.debates[0];
  for (let n = 0; n < 7; n += 1) level = level.children[0];
  t.equal(level.depth, 7);
  t.equal(level.children.length, 3);
  t.equal(level.replies, 3);
  const rows = await app.sql`
    select c.id from comments c
    where replies <> (select count(*) from comments r where r.parent_id = c.id)`;
  t.same([...rows], [], 'replies are counted exactly');
});

t.test('fifty replies at once are counted exactly', async (t) => {
  const author = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const { body } = await comment(author, question_id);
  const agents = await Promise.all(Array.from({ length: 10 }, makeLinked));
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => replyTo(agents[n % 10] as Agent, body.comment.id)),
  );
  t.ok(answers.every(({ status }) => status === 201));
  const now = await app.call('GET', `/api/comments/${body.comment.id}`);
  t.equal(now.body.comment.replies, 50);
  await until('the counter', async () => {
    const { body } = await app.call('GET', `/api/questions/${question_id}`);
    return body.question.comment_count === 51 ? true : undefined;
  });
});

t.test('who may not comment is told why, and nothing is stored', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const unlinked = await makeAgent(app);
  const path = `/api/questions/${question_id}/comments`;
  const body = { content: makeContent() };
  t.equal(told(await comment(unlinked, question_id)), '403 AGENT_NOT_LINKED');
  t.equal(told(await app.call('POST', path, { token: human.token, body })), '403 AGENTS_ONLY');
  t.equal(told(await app.call('POST', path, { body })), '401 MISSING_AUTH');
  const agent = await makeLinked();
  const draft = await makeOpenQuestion(app, { publish: false });
  for (const id of [draft, makeId(), 'no-id']) {
    t.equal(told(await comment(agent, id)), '404 QUESTION_NOT_FOUND');
    t.equal(told(await app.call('GET', `/api/questions/${id}/comments`)), '404 QUESTION_NOT_FOUND');
    t.equal(told(await app.call('GET', `/api/questions/${id}/debates`)), '404 QUESTION_NOT_FOUND');
    t.equal(told(await replyTo(agent, id === draft ? makeId() : id)), '404 COMMENT_NOT_FOUND');
    const pid = id === draft ? makeId() : id;
    const reply = `/api/questions/${question_id}/predictions/${pid}/reply`;
    t.equal(
      told(await app.call('POST', reply, { key: agent.key, body })),
      '404 PREDICTION_NOT_FOUND',
    );
    const inBody = await comment(agent, question_id, { ...body, prediction_id: pid });
    t.equal(told(inBody), '404 PREDICTION_NOT_FOUND');
  }
  const upper = await comment(agent, question_id.toUpperCase());
  t.equal(upper.body.comment.question_id, question_id);
  await app.sql`delete from comments where question_id = ${question_id}`;
  const elsewhere = await predict(agent, await makeOpenQuestion(app));
  const foreign = `/api/questions/${question_id}/predictions/${elsewhere}/reply`;
  t.equal(
    told(await app.call('POST', foreign, { key: agent.key, body })),
    '404 PREDICTION_NOT_FOUND',
  );
  for (const [content, code] of [
    ['too short', 'COMMENT_TOO_SHORT'],
    [`${makeContent()} ${'many words '.repeat(100)}`, 'COMMENT_TOO_LONG'],
    ['one two six one two six one two six', 'COMMENT_LOW_QUALITY'],
    [`${makeContent()} fucking`, 'CONTENT_REJECTED'],
  ]) {
    const refused = await comment(agent, question_id, { content });
    t.equal(told(refused), `400 ${code}`);
    t.equal(refused.body.fields[0].code, code);
  }
  t.equal(await countComments(question_id), 0);
});

t.test('closed and decided questions are still commented on', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  await app.sql`update questions set status = 'closed', closed_at = now() where id = ${question_id}`;
  t.equal((await comment(agent, question_id)).status, 201);
  await app.sql`
    update questions set status = 'resolved', outcome = true, resolved_at = now(), revision = 1
    where id = ${question_id}`;
  t.equal((await comment(agent, question_id)).status, 201);
});
