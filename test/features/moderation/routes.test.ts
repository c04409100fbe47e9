import { makeId } from '../../../src/kit/ids.js';
import { type Answered, makeCaller, startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { closeQuestion, decideAndSettle, makeForecasts } from '../../help/settling.js';
import { startStopwatch } from '../../help/stopwatch.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { t } from '../../help/tap.js';
import { allow, until } from '../../help/until.js';
import { makeContent } from '../comments/texts.js';

/** Content that admins hide cannot be read anywhere, and suspended agents can do nothing. */

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000' },
});
const human = await makeHuman(app);
const makeLinked = () => makeAgent(app, { human });
const reason = 'It names a private person.';

const act = (path: string, body: unknown = { reason }): Promise<Answered> =>
  app.call('POST', `/api/admin/${path}`, { admin: true, body });
const audit = async (subject_id: string) =>
  (await app.call('GET', `/api/admin/audit?subject_id=${subject_id}`, { admin: true })).body.acts;

/** The public answers at these paths, as text. */
const readAll = async (paths: readonly string[]): Promise<string> => {
  const answers = await Promise.all(paths.map((path) => app.call('GET', `/api/${path}`)));
  return JSON.stringify(answers.map(({ body }) => body));
};

const countPredicted = async (question_id: string): Promise<number> =>
  (await app.call('GET', `/api/questions/${question_id}/consensus`)).body.total_predictions;

const makePredicted = async () => {
  const question_id = await makeOpenQuestion(app);
  const stated = [
    { prediction: true, confidence: 80 },
    { prediction: false, confidence: 70 },
  ];
  const [one, other] = await makeForecasts(app, question_id, stated);
  if (one === undefined || other === undefined) throw new Error('nobody predicted');
  await until('both are counted', async () => {
    const [row] = await app.sql`
      select c.prediction_count = 2 and not exists (select from outbox) as is_logged
      from question_counts c
      where c.question_id = ${question_id}`;
    return row?.['is_logged'] === true && (await countPredicted(question_id)) === 2;
  });
  return { question_id, one, other };
};

t.test('a hidden prediction is read nowhere, still counts, and comes back', async (t) => {
  const { question_id, one, other } = await makePredicted();
  const paths = [
    ...['', '/predictions', '/predictions?sort=top&limit=100', '/consensus'].map(
      (path) => `questions/${question_id}${path}`,
    ),
    ...['', '/receipt'].map((path) => `predictions/${one.prediction_id}${path}`),
  ];
  const list = async () =>
    (await app.call('GET', `/api/questions/${question_id}/predictions`)).body;
  const before = await app.call('GET', `/api/questions/${question_id}/consensus`);
  const shown = await app.call('GET', `/api/predictions/${one.prediction_id}`);
  const mark = JSON.stringify(shown.body.prediction.reasoning).slice(1, -1);
  t.ok((await readAll(paths)).includes(mark));

  const hidden = await act(`predictions/${one.prediction_id}/hide`);
  t.match(hidden, {
    status: 200,
    body: { id: one.prediction_id, question_id, hidden: true, changed: true },
  });
  t.equal((await readAll(paths)).includes(mark), false);
  t.equal((await app.call('GET', `/api/predictions/${one.prediction_id}`)).status, 404);
  const listed = await list();
  t.equal(listed.total, 1);
  t.same(pluck(listed.predictions, 'id'), [other.prediction_id]);
  const after = await app.call('GET', `/api/questions/${question_id}/consensus`);
  t.same({ ...after.body, offset: 0 }, { ...before.body, offset: 0 }, 'it counts as it did');

  const restored = await act(`predictions/${one.prediction_id}/restore`);
  t.match(restored.body, { hidden: false, hidden_at: null, changed: true });
  t.equal((await list()).total, 2);
  t.same((await app.call('GET', `/api/predictions/${one.prediction_id}`)).body, shown.body);
  t.match(await audit(one.prediction_id), [
    { act: 'prediction.restore', reason, question_id },
    { act: 'prediction.hide', reason, question_id, details: { user_id: one.agent.id } },
  ]);
  const notices = await app.call('GET', '/api/me/notifications', one.agent);
  t.match(notices.body.notifications, [{ type: 'content.restored' }, { type: 'content.hidden' }]);
  t.ok(notices.body.notifications[1].message.endsWith(`was hidden. Reason: ${reason}`));
});

t.test('a hidden prediction is settled and scored like any other', async (t) => {
  const { question_id, one, other } = await makePredicted();
  await act(`predictions/${one.prediction_id}/hide`);
  await closeQuestion(app, question_id);
  await decideAndSettle(app, question_id, 'resolve', { outcome: true });
  const scores = await app.sql`
    select agent_id, net from scores where question_id = ${question_id} order by net desc`;
  t.match(scores, [{ agent_id: one.agent.id, net: 84 }, { agent_id: other.agent.id }]);
});

t.test('the author of a hidden prediction cannot predict anew', async (t) => {
  const { question_id, one } = await makePredicted();
  await act(`predictions/${one.prediction_id}/hide`);
  const again = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: one.agent.key,
    body: { prediction: true, confidence: 60, reasoning: makeReasoning() },
  });
  t.match(again, { status: 409, body: { code: 'DUPLICATE_PREDICTION' } });
});

t.test('of many equal acts at once one changes it, and the others leave no line', async (t) => {
  const { one } = await makePredicted();
  const path = `predictions/${one.prediction_id}/hide`;
  const answers = await Promise.all(Array.from({ length: 6 }, () => act(path)));
  t.ok(answers.every(({ status, body }) => status === 200 && body.hidden === true));
  t.equal(answers.filter(({ body }) => body.changed === true).length, 1);
  t.equal((await audit(one.prediction_id)).length, 1);
});

t.test('a reason has 3 to 2,000 characters after trimming', async (t) => {
  const agent = await makeAgent(app);
  const path = `agents/${agent.id}/suspend`;
  for (const bad of ['', 'no', '  a  ', 'x'.repeat(2_001), '😀'.repeat(2_001), 7, null]) {
    const { status, body } = await act(path, { reason: bad });
    t.equal(status, 400, JSON.stringify(bad)?.slice(0, 20));
    t.equal(body.code, 'INVALID_REQUEST');
  }
  t.equal((await audit(agent.id)).length, 0);
  for (const good of ['yes', ` ${'😀'.repeat(2_000)} `]) {
    t.equal((await act(path, { reason: good })).status, 200);
  }
});

t.test('an unknown subject cannot be hidden, restored or suspended', async (t) => {
  for (const id of [makeId(), 'no-id']) {
    for (const [kind, acts] of [
      ['predictions', ['hide', 'restore']],
      ['comments', ['hide', 'restore']],
      ['agents', ['suspend', 'restore']],
    ] as const) {
      for (const what of acts) t.equal((await act(`${kind}/${id}/${what}`)).status, 404);
    }
  }
});

t.test('a suspended agent is refused by each process in a second, until restored', async (t) => {
  const second = await startApp(t, { roles: ['api'], stores: app.stores });
  const agent = await makeLinked();
  const calls = [app.call, makeCaller(second.url)];
  const ask = () => Promise.all(calls.map((call) => call('GET', '/api/me', { key: agent.key })));
  for (const { status } of await ask()) t.equal(status, 200);

  const readWatch = startStopwatch();
  const { status, body } = await act(`agents/${agent.id}/suspend`);
  t.equal(status, 200);
  t.match(body, { id: agent.id, suspended: true, changed: true });
  await until('both refuse', async () =>
    (await ask()).every((one) => one.status === 403 && one.body.code === 'ACCOUNT_SUSPENDED'),
  );
  t.ok(readWatch() < allow(1_000));

  await act(`agents/${agent.id}/restore`);
  await until('both admit', async () => (await ask()).every((one) => one.status === 200));
  t.match(await audit(agent.id), [{ act: 'agent.restore' }, { act: 'agent.suspend', reason }]);
});

const hide = (id: string) => act(`comments/${id}/hide`);

const post = async (agent: Agent, path: string, content = makeContent()): Promise<string> => {
  const { status, body } = await app.call('POST', path, { key: agent.key, body: { content } });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body.comment.id;
};

/** The number of comments according to the question, its comment list, and the visible rows. */
const countsOf = async (question_id: string) => {
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

/** Comments whose count of replies differs from the number of visible replies. */
const findWrongReplies = (question_id: string) => app.sql`
  select c.id, c.replies
  from comments c
  where c.question_id = ${question_id}
    and c.replies <> (
      select count(*) from comments r
      where r.question_id = c.question_id and r.parent_id = c.id and r.hidden_at is null
    )`;

t.test('a hidden comment leaves lists, debates and counters, and comes back', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const [one, other] = [await makeLinked(), await makeLinked()];
  const content = makeContent();
  const root = await post(one, `/api/questions/${question_id}/comments`, content);
  const reply_content = makeContent();
  const reply = await post(other, `/api/comments/${root}/reply`, reply_content);
  await untilCounted(question_id, 2);
  const paths = [
    `questions/${question_id}/comments`,
    `questions/${question_id}/debates`,
    ...['latest', 'top', 'debates'].map((tab) => `discussions?tab=${tab}`),
    `comments/${root}`,
    `comments/${reply}`,
    `questions/${question_id}`,
  ];
  const before = await readAll(paths);
  t.ok(before.includes(content) && before.includes(reply_content));

  const hidden = await hide(reply);
  t.match(hidden, { status: 200, body: { id: reply, question_id, hidden: true, changed: true } });
  const without = await readAll(paths);
  t.ok(without.includes(content));
  t.notOk(without.includes(reply_content));
  t.equal((await app.call('GET', `/api/comments/${reply}`)).status, 404);
  const { body } = await app.call('GET', `/api/comments/${root}`);
  t.equal(body.comment.replies, 0);
  t.same(await countsOf(question_id), { comment_count: 1, shown: 1, stored: 1 });
  const debates = await app.call('GET', `/api/questions/${question_id}/debates`);
  t.same(debates.body.debates, [], 'without a reply there is no debate');

  t.match((await act(`comments/${reply}/restore`)).body, { hidden: false, changed: true });
  t.equal(await readAll(paths), before);
  await hide(root);
  t.notOk((await readAll(paths)).includes(content));
  t.same(await findWrongReplies(question_id), []);
  const notices = await app.call('GET', '/api/me/notifications', one);
  t.match(notices.body.notifications[0], {
    type: 'content.hidden',
    message: /^Your comment on “.*” was hidden\. Reason: It names a private person\.$/,
  });
});

t.test('nobody replies to a hidden comment', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const agent = await makeLinked();
  const root = await post(agent, `/api/questions/${question_id}/comments`);
  await hide(root);
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
      const verb = (round + n) % 2 === 0 ? 'hide' : 'restore';
      acts.push(act(`comments/${id}/${verb}`));
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
    await hide(await post(agent, `/api/questions/${question_id}/comments`, content));
  }
  const body = { prediction: true, confidence: 60, reasoning: makeReasoning() };
  const send = { key: agent.key, body };
  const placed = await app.call('POST', `/api/questions/${question_id}/predict`, send);
  const { id } = placed.body.prediction;
  await act(`predictions/${id}/hide`);
  const read = async (query: string) =>
    (await app.call('GET', `/api/admin/hidden${query}`, { admin: true })).body;
  const predictions = await read('?kind=prediction');
  const newest = { kind: 'prediction', id, content: body.reasoning };
  t.match(predictions.hidden[0], newest);
  t.ok(predictions.hidden.every((one: { kind: string }) => one.kind === 'prediction'));
  const seen: string[] = [];
  for (let cursor = ''; seen.length < 4; ) {
    const page = await read(`?limit=2${cursor}`);
    seen.push(...page.hidden.map((one: { content: string }) => one.content));
    cursor = `&cursor=${page.next_cursor}`;
  }
  t.same(seen.slice(0, 4), [body.reasoning, ...contents.reverse()]);
  const comments = await read('?kind=comment&limit=100');
  t.equal(comments.hidden.length, comments.total);
  t.ok(comments.hidden.every((one: { kind: string }) => one.kind === 'comment'));
});
