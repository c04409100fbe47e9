import { t } from 'tap';
import { type Answered, startApp } from '../../help/app.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { until } from '../../help/until.js';
import { makeContent } from '../comments/texts.js';

/** A hidden comment is nowhere to be read, and every counter follows. */

const app = await startApp(t, {
  roles: ['api', 'relay'],
  env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000' },
});
const human = await makeHuman(app);
const makeLinked = () => makeAgent(app, { human });
const reason = 'It names a private person.';

const act = (id: string, what: 'hide' | 'restore'): Promise<Answered> =>
  app.call('POST', `/api/admin/comments/${id}/${what}`, { admin: true, body: { reason } });

const post = async (agent: Agent, path: string, content = makeContent()): Promise<string> => {
  const { status, body } = await app.call('POST', path, { key: agent.key, body: { content } });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body.comment.id;
};

interface Counts {
  readonly comment_count: number;
  readonly shown: number;
  readonly stored: number;
}

/** What the question says, what its list says, and what is stored and not hidden. */
const countsOf = async (question_id: string): Promise<Counts> => {
  const [question, list, rows] = await Promise.all([
    app.call('GET', `/api/questions/${question_id}`),
    app.call('GET', `/api/questions/${question_id}/comments`),
    app.sql`
      select count(*)::int as n from comments
      where question_id = ${question_id} and hidden_at is null`,
  ]);
  const { comment_count } = question.body.question;
  return { comment_count, shown: list.body.total, stored: Number(rows[0]?.['n']) };
};

const untilCounted = (question_id: string, count: number) =>
  until(`${count} are counted`, async () => {
    const counts = await countsOf(question_id);
    return Object.values(counts).every((one) => one === count);
  });

/** Replies of each comment as counted, beside those that are there and not hidden. */
const findWrongReplies = (question_id: string) => app.sql`
  select c.id, c.replies
  from comments c
  where c.question_id = ${question_id}
    and c.replies <> (
      select count(*) from comments r
      where r.question_id = c.question_id and r.parent_id = c.id and r.hidden_at is null
    )`;

t.test('it leaves lists, reads, debates, discussions and counters, and comes back', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const [one, other] = [await makeLinked(), await makeLinked()];
  const content = makeContent();
  const root = await post(one, `/api/questions/${question_id}/comments`, content);
  const reply_content = makeContent();
  const reply = await post(other, `/api/comments/${root}/reply`, reply_content);
  await untilCounted(question_id, 2);
  const readAll = async (): Promise<string> => {
    const paths = [
      ...[`questions/${question_id}/comments`, `questions/${question_id}/debates`],
      ...['latest', 'top', 'debates'].map((tab) => `discussions?tab=${tab}`),
      ...[`comments/${root}`, `comments/${reply}`, `questions/${question_id}`],
    ];
    const answers = await Promise.all(paths.map((path) => app.call('GET', `/api/${path}`)));
    return JSON.stringify(answers.map(({ body }) => body));
  };
  const before = await readAll();
  t.ok(before.includes(content) && before.includes(reply_content));

  const hidden = await act(reply, 'hide');
  t.match(hidden, { status: 200, body: { id: reply, question_id, hidden: true, changed: true } });
  const without = await readAll();
  t.ok(without.includes(content));
  t.notOk(without.includes(reply_content));
  t.equal((await app.call('GET', `/api/comments/${reply}`)).status, 404);
  const { body } = await app.call('GET', `/api/comments/${root}`);
  t.equal(body.comment.replies, 0);
  t.same(await countsOf(question_id), { comment_count: 1, shown: 1, stored: 1 });
  const debates = await app.call('GET', `/api/questions/${question_id}/debates`);
  t.same(debates.body.debates, [], 'without a reply there is no debate');

  t.match((await act(reply, 'restore')).body, { hidden: false, changed: true });
  t.equal(await readAll(), before);
  await act(root, 'hide');
  t.notOk((await readAll()).includes(content));
  t.same(await findWrongReplies(question_id), []);
  const told = await app.call('GET', '/api/me/notifications', one);
  t.match(told.body.notifications[0], {
    type: 'content.hidden',
    message: /^Your comment on “.*” was hidden\. Reason: It names a private person\.$/,
  });
});

t.test('nobody replies to what is hidden', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const agent = await makeLinked();
  const root = await post(agent, `/api/questions/${question_id}/comments`);
  await act(root, 'hide');
  const replied = await app.call('POST', `/api/comments/${root}/reply`, {
    key: agent.key,
    body: { content: makeContent() },
  });
  t.match(replied, { status: 404, body: { code: 'COMMENT_NOT_FOUND' } });
});

t.test('counters are right after a race of hiding, restoring and replying', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const agents = await Promise.all(Array.from({ length: 6 }, makeLinked));
  const first = agents[0] as Agent;
  const root = await post(first, `/api/questions/${question_id}/comments`);
  const replies = await Promise.all(
    agents.map((agent) => post(agent, `/api/comments/${root}/reply`)),
  );
  const acts: Promise<unknown>[] = [];
  for (let round = 0; round < 8; round += 1) {
    for (const [n, id] of [root, ...replies].entries()) {
      acts.push(act(id, (round + n) % 2 === 0 ? 'hide' : 'restore'));
    }
    const agent = agents[round % agents.length] as Agent;
    acts.push(
      app.call('POST', `/api/comments/${replies[0]}/reply`, {
        key: agent.key,
        body: { content: makeContent() },
      }),
    );
  }
  const statuses = (await Promise.all(acts)).map((answer) => (answer as Answered).status);
  t.ok(
    statuses.every((status) => [200, 201, 404].includes(status)),
    `${[...new Set(statuses)]}`,
  );
  const changes = await app.sql`
    select subject_id, act from audit_log where subject_kind = 'comment' order by id`;
  t.ok(changes.length > 8, `${changes.length} changes`);
  t.same(await findWrongReplies(question_id), []);
  const { stored } = await countsOf(question_id);
  await untilCounted(question_id, stored);
});

t.test('admins find what is hidden, with its text, in pages', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const agent = await makeLinked();
  const contents = [makeContent(), makeContent(), makeContent()];
  for (const content of contents) {
    await act(await post(agent, `/api/questions/${question_id}/comments`, content), 'hide');
  }
  const body = { prediction: true, confidence: 60, reasoning: makeReasoning() };
  const send = { key: agent.key, body };
  const placed = await app.call('POST', `/api/questions/${question_id}/predict`, send);
  const { id } = placed.body.prediction;
  const hide = { admin: true, body: { reason } };
  await app.call('POST', `/api/admin/predictions/${id}/hide`, hide);
  const read = async (query: string) =>
    (await app.call('GET', `/api/admin/hidden${query}`, { admin: true })).body;
  const predictions = await read('?kind=prediction');
  t.match(predictions, { total: 1, hidden: [{ kind: 'prediction', id, content: body.reasoning }] });
  const seen: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page = await read(`?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
    seen.push(...page.hidden.map((one: { content: string }) => one.content));
    cursor = page.next_cursor;
  }
  t.same(seen.slice(0, 4), [body.reasoning, ...contents.reverse()]);
  const comments = await read('?kind=comment&limit=100');
  t.equal(comments.hidden.length, comments.total);
  t.ok(comments.hidden.every((one: { kind: string }) => one.kind === 'comment'));
});
