import { firstIdAt, makeId } from '../../../src/kit/ids.js';
import { type Answered, startApp } from '../../help/app.js';
import { predict as predictOn } from '../../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { makeContent } from './texts.js';

/** An agent's limits hold across two api processes on one Postgres. */

const env = { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000' };
const app = await startApp(t, { roles: ['api', 'relay'], env });
const apps = [app, await startApp(t, { roles: ['api'], env, stores: app.stores })] as const;
const human = await makeHuman(app);
const makeLinked = () => makeAgent(app, { human });

const comment = (agent: Agent, id: string, body: object = { content: makeContent() }, n = 0) =>
  (apps[n % 2] ?? app).call('POST', `/api/questions/${id}/comments`, { key: agent.key, body });
const replyTo = (agent: Agent, comment_id: string, content = makeContent()) =>
  app.call('POST', `/api/comments/${comment_id}/reply`, { key: agent.key, body: { content } });
const replyPath = (id: string, pid: string) => `/api/questions/${id}/predictions/${pid}/reply`;
const predict = (agent: Agent, question_id: string) =>
  predictOn(app, agent, question_id, { prediction: true, confidence: 60 });
const codeOf = ({ status, body }: Answered): string => `${status} ${body.code ?? ''}`.trim();
const codesOf = (answers: readonly Answered[]) => answers.map(codeOf).sort();
const countComments = async (question_id: string): Promise<number> => {
  const [row] = await app.sql<{ n: number }[]>`
    select count(*)::int as n from comments where question_id = ${question_id}`;
  return row?.n ?? 0;
};
const untilCounted = (question_id: string, count: number) =>
  until('the counter', async () => {
    const { body } = await app.call('GET', `/api/questions/${question_id}`);
    return body.question.comment_count === count;
  });

t.test('a comment is stored, shown and sent to everybody', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const content = `  ${makeContent()}  `;
  const posted = await comment(agent, question_id, { content });
  t.equal(posted.status, 201);
  const shown = posted.body.comment;
  t.match(shown, {
    question_id,
    prediction_id: null,
    parent_id: null,
    depth: 0,
    upvotes: 0,
    replies: 0,
    user_id: agent.id,
    user_name: agent.name,
    content: content.trim(),
  });
  t.equal(shown.id, shown.comment_id);
  const list = await app.call('GET', `/api/questions/${question_id}/comments`);
  t.same(list.body, { total: 1, comments: [shown], next_cursor: null });
  t.same((await app.call('GET', `/api/comments/${shown.id}`)).body, { comment: shown });
  await untilCounted(question_id, 1);
  const [event] = await app.sql`
    select audience_id, body from events
    where event = 'comment.created' and question_id = ${question_id}`;
  t.equal(event?.['audience_id'], null);
  t.match(JSON.parse(String(event?.['body'])), {
    event: 'comment.created',
    data: { question_id, comment_id: shown.id, content: shown.content, user_name: agent.name },
  });
});

t.test('a reply is sent to the author of what it replies to, and to nobody else', async (t) => {
  const [author, other] = [await makeLinked(), await makeLinked()];
  const question_id = await makeOpenQuestion(app);
  const pid = await predict(author, question_id);
  const first = await app.call('POST', replyPath(question_id, pid), {
    key: other.key,
    body: { content: makeContent() },
  });
  t.match(first, { status: 201, body: { comment: { prediction_id: pid, parent_id: null } } });
  const first_id = first.body.comment.id;
  const second = await replyTo(author, first_id);
  t.match(second.body.comment, { prediction_id: pid, parent_id: first_id, depth: 1 });
  t.equal((await replyTo(author, second.body.comment.id)).status, 201, 'one may reply to oneself');
  const by_body = await comment(other, question_id, { content: makeContent(), prediction_id: pid });
  t.match(by_body.body.comment, { prediction_id: pid, parent_id: null });
  const events = await until('the events', async () => {
    const rows = await app.sql<{ audience_id: string; body: string }[]>`
      select audience_id, body from events
      where event = 'comment.reply' and question_id = ${question_id} order by "offset"`;
    return rows.length >= 3 && rows;
  });
  const audience = events.map(({ audience_id }) => audience_id);
  t.same(audience, [author.id, other.id, author.id]);
  t.match(JSON.parse(events[0]?.body ?? ''), {
    data: { question_id, comment_id: first_id, replier_name: other.name },
  });
  const replies = await app.call('GET', `/api/predictions/${pid}/replies`);
  t.same([replies.body.total, replies.body.replies.length], [4, 4]);
  const below = (id: string, query = '') =>
    app.call('GET', `/api/questions/${id}/predictions/${pid}/replies${query}`);
  t.match(await below(question_id), { status: 200, body: replies.body }, 'also below its question');
  t.equal((await below(question_id.toUpperCase())).status, 200);
  const paged = await below(question_id, '?limit=1');
  t.match(paged.headers.get('link'), `/api/questions/${question_id}/predictions/${pid}/replies?`);
  t.equal(codeOf(await below(await makeOpenQuestion(app))), '404 PREDICTION_NOT_FOUND');
});

t.test('sixty-four comments at once in two processes: exactly five are stored', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const answers = await Promise.all(
    Array.from({ length: 64 }, (_, n) => comment(agent, question_id, undefined, n)),
  );
  const wanted = [...Array(5).fill('201'), ...Array(59).fill('409 COMMENT_LIMIT_REACHED')];
  t.same(codesOf(answers), wanted);
  t.equal(await countComments(question_id), 5);
  const other = await comment(agent, await makeOpenQuestion(app));
  t.equal(other.status, 201, 'the five are counted for each question');
  const list = await app.call('GET', `/api/questions/${question_id}/comments`);
  t.equal((await replyTo(agent, list.body.comments[0].id)).status, 201, 'replies are not counted');
  for (const [slot, rule] of [
    [6, /comments_slot_check/],
    [4, /comments_slots/],
  ] as const) {
    await t.rejects(
      app.sql`update comments set slot = ${slot} where question_id = ${question_id} and slot = 5`,
      rule,
    );
  }
});

t.test('an identical body gives the first result for ten minutes', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const body = { content: makeContent() };
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, n) => comment(agent, question_id, body, n)),
  );
  t.equal(new Set(answers.map((answer) => answer.body.comment.id)).size, 1);
  t.same(codesOf(answers), [...Array(15).fill('200'), '201']);
  for (const { status, headers } of answers) {
    t.equal(headers.get('idempotency-replayed'), status === 200 ? 'true' : null);
  }
  t.equal(await countComments(question_id), 1);
  const setBack = (seconds: number) => app.sql`
    update comments set created_at = created_at - make_interval(secs => ${seconds})
    where question_id = ${question_id}`;
  await setBack(601);
  t.equal(codeOf(await comment(agent, question_id, body)), '400 CONTENT_REJECTED', 'now a copy');
  await setBack(3_600);
  t.equal((await comment(agent, question_id, body)).status, 201, 'and later a comment');
});

t.test('a near-copy of what the agent wrote lately is refused, of others not', async (t) => {
  const [agent, other] = [await makeLinked(), await makeLinked()];
  const ids = await Promise.all(Array.from({ length: 16 }, () => makeOpenQuestion(app)));
  const content = makeContent();
  const answers = await Promise.all(
    ids.map((id, n) => comment(agent, id, { content: `${content}${'!'.repeat(n)}` }, n)),
  );
  t.same(codesOf(answers), ['201', ...Array(15).fill('400 CONTENT_REJECTED')]);
  const copy = { content: `${content.toUpperCase()}!!` };
  t.equal(codeOf(await comment(agent, ids[0] ?? '', copy)), '400 CONTENT_REJECTED');
  t.equal((await comment(other, ids[0] ?? '', copy)).status, 201);
});

t.test('a comment sorts after all that its agent wrote, whatever the clocks say', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  t.equal((await comment(agent, question_id)).status, 201);
  const ahead = firstIdAt(Date.now() + 3_600_000);
  await app.sql`
    insert into comments
      (question_id, id, agent_id, root_id, depth, slot, content, body_digest, event_id, created_at)
    select question_id, ${ahead}, agent_id, ${ahead}, 0, 2, 'Of a clock that is ahead of others.',
      sha256('ahead'), gen_random_uuid(), now()
    from comments
    where agent_id = ${agent.id}`;
  let last = ahead;
  for (const n of [0, 1, 0]) {
    const { status, body } = await comment(agent, question_id, undefined, n);
    t.equal(status, 201);
    const { id } = body.comment;
    t.ok(id > last, `${id} after ${last}`);
    last = id;
    t.match((await apps[1].call('GET', `/api/comments/${id}`)).body.comment, { root_id: id });
  }
});

t.test('an Idempotency-Key keeps the answer with the comment', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  const headers = { 'idempotency-key': 'one' };
  const send = (n: 0 | 1, content: string) =>
    apps[n].call('POST', `/api/questions/${question_id}/comments`, {
      key: agent.key,
      headers,
      body: { content },
    });
  const content = makeContent();
  const first = await send(0, content);
  const again = await send(1, content);
  t.same([first.status, again.status], [201, 201]);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.same(again.body, first.body);
  t.equal(codeOf(await send(0, makeContent())), '422 IDEMPOTENCY_MISMATCH');
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
  t.equal(codeOf(refused), '403 TIER_REQUIRED');
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
  for (let n = 1; n <= 10; n += 1) {
    last = (await replyTo(agents[n % 2] as Agent, last.id)).body.comment;
    t.equal(last.root_id, root);
    depths.push(last.depth);
  }
  t.same(depths, [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
  const { body } = await app.call('GET', `/api/questions/${question_id}/debates`);
  t.match(body, { total: 1, debates: [{ comment_count: 11, truncated: false }] });
  let level = body.debates[0];
  for (let n = 0; n < 7; n += 1) level = level.children[0];
  t.match(level, { depth: 7, replies: 3 });
  t.equal(level.children.length, 3);
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
  t.equal((await app.call('GET', `/api/comments/${body.comment.id}`)).body.comment.replies, 50);
  await untilCounted(question_id, 51);
  const wrong = await app.sql`
    select c.id from comments c
    where replies <> (select count(*) from comments r where r.parent_id = c.id)`;
  t.same([...wrong], []);
});

t.test('what is not allowed is refused with its code, and nothing is stored', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}/comments`;
  const body = { content: makeContent() };
  t.equal(codeOf(await comment(await makeAgent(app), question_id)), '403 AGENT_NOT_LINKED');
  t.equal(codeOf(await app.call('POST', path, { token: human.token, body })), '403 AGENTS_ONLY');
  t.equal(codeOf(await app.call('POST', path, { body })), '401 MISSING_AUTH');
  const agent = await makeLinked();
  const reply = (pid: string) =>
    app.call('POST', replyPath(question_id, pid), { key: agent.key, body });
  const draft = await makeOpenQuestion(app, { publish: false });
  for (const id of [draft, makeId(), 'no-id']) {
    t.equal(codeOf(await comment(agent, id)), '404 QUESTION_NOT_FOUND');
    for (const list of ['comments', 'debates']) {
      const answer = await app.call('GET', `/api/questions/${id}/${list}`);
      t.equal(codeOf(answer), '404 QUESTION_NOT_FOUND');
    }
    const absent = id === draft ? makeId() : id;
    t.equal(codeOf(await replyTo(agent, absent)), '404 COMMENT_NOT_FOUND');
    t.equal(codeOf(await reply(absent)), '404 PREDICTION_NOT_FOUND');
    const in_body = await comment(agent, question_id, { ...body, prediction_id: absent });
    t.equal(codeOf(in_body), '404 PREDICTION_NOT_FOUND');
  }
  const elsewhere = await predict(agent, await makeOpenQuestion(app));
  t.equal(codeOf(await reply(elsewhere)), '404 PREDICTION_NOT_FOUND');
  for (const [content, code] of [
    ['too short', 'COMMENT_TOO_SHORT'],
    [`${makeContent()} ${'many words '.repeat(100)}`, 'COMMENT_TOO_LONG'],
    ['one two six one two six one two six', 'COMMENT_LOW_QUALITY'],
    [`${makeContent()} fucking`, 'CONTENT_REJECTED'],
  ]) {
    const refused = await comment(agent, question_id, { content });
    t.equal(codeOf(refused), `400 ${code}`);
    t.equal(refused.body.fields[0].code, code);
  }
  t.equal(await countComments(question_id), 0);
  t.equal((await comment(agent, question_id.toUpperCase())).body.comment.question_id, question_id);
});

t.test('closed and decided questions are still commented on', async (t) => {
  const agent = await makeLinked();
  const question_id = await makeOpenQuestion(app);
  await app.sql`
    update questions set status = 'closed', closed_at = now() where id = ${question_id}`;
  t.equal((await comment(agent, question_id)).status, 201);
  await app.sql`
    update questions set status = 'resolved', outcome = true, resolved_at = now(), revision = 1
    where id = ${question_id}`;
  t.equal((await comment(agent, question_id)).status, 201);
});
