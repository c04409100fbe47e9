import { max_suggestions } from '../../../src/features/questions/life.js';
import { startApp } from '../../help/app.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t as root } from '../../help/tap.js';

const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();

const suggestion = (fields: Readonly<Record<string, unknown>> = {}) => ({
  question: 'Will the night train to the coast run again before the summer?',
  category: 'society',
  subcategory: 'benefits_public_good',
  closes_at: inDays(20),
  ...fields,
});

/** Suggestions of agents, and the decisions of admins about them. Each test has its own agent. */
const app = await startApp(root, { roles: ['api'] });
const human = await makeHuman(app);

const setUp = async () => {
  const agent = await makeAgent(app, { human });
  const suggest = (body: unknown, { key }: Agent = agent) =>
    app.call('POST', '/api/questions/suggest', { key, body });
  const count = async (): Promise<number> =>
    (await app.sql`select from questions where author_id = ${agent.id}`).length;
  return { agent, suggest, count };
};

root.test('a suggestion is a draft of its author, and weighs what an admin says', async (t) => {
  const { agent, suggest } = await setUp();
  const extra = { weight: 5, source: 'x', source_id: 'y', publish: true, status: 'open' };
  const made = await suggest(suggestion(extra));
  t.equal(made.status, 201);
  t.match(made.body.question, { status: 'draft', weight: 1, question: suggestion().question });
  const [row] = await app.sql`
    select id, status, weight, source from questions where author_id = ${agent.id}`;
  t.match(row, { status: 'draft', weight: 1, source: null });
  t.same(await app.sql`select from outbox where question_id = ${row?.['id']}`, []);
});

root.test('a draft is there for its author and for admins, and for nobody else', async (t) => {
  const { agent, suggest } = await setUp();
  const stranger = await makeAgent(app, { human });
  const { id } = (await suggest(suggestion())).body.question;
  const paths = [
    `/api/questions/${id}`,
    `/api/questions/${id}/consensus`,
    `/api/questions/${id}/predictions`,
  ];
  for (const path of paths) {
    t.equal((await app.call('GET', path, { key: agent.key })).status, 200, 'its author');
    t.equal((await app.call('GET', path, { admin: true })).status, 200, 'an admin');
    for (const who of [{}, { key: stranger.key }, { token: human.token }]) {
      const hidden = await app.call('GET', path, who);
      t.match(hidden, { status: 404, body: { code: 'QUESTION_NOT_FOUND' } }, path);
    }
  }
  for (const query of ['', '?status=all', '?q=night+train', '?sort=closing_soon']) {
    const { body } = await app.call('GET', `/api/questions${query}`, { key: agent.key });
    const shown = body.questions.map((one: { id: string }) => one.id);
    t.notOk(shown.includes(id), `not in the public list${query}`);
  }
  t.equal((await app.call('GET', '/api/questions?status=draft')).status, 400);
});

root.test(
  'admins review: the list of drafts names authors, and a draft can be published',
  async (t) => {
    const { agent, suggest } = await setUp();
    const ids: string[] = [];
    for (let n = 0; n < 2; n += 1) ids.push((await suggest(suggestion())).body.question.id);
    const [older, id] = ids as [string, string];
    const own = await makeOpenQuestion(app, { publish: false });
    const list = async (query: string) =>
      (await app.call('GET', `/api/admin/questions${query}`, { admin: true })).body;
    const newest = (await list('?status=draft')).questions;
    t.match(newest.slice(0, 2), [
      { id: own, author_id: null },
      { id, status: 'draft', author_id: agent.id },
    ]);
    const by_author = `?author_id=${agent.id.toUpperCase()}`;
    t.equal((await list(`${by_author}&status=draft`)).total, 2);
    t.equal((await list('?status=nothing')).status, 400);
    t.equal((await list('?author_id=nothing')).status, 400);
    const first = await list(`${by_author}&status=draft&limit=1`);
    const second = await list(`${by_author}&status=draft&limit=1&cursor=${first.next_cursor}`);
    t.same([second.questions[0].id, second.next_cursor], [older, null]);

    const edit = { weight: 3, category: 'industry', subcategory: 'transportation_mobility' };
    await app.call('PATCH', `/api/admin/questions/${id}`, { admin: true, body: edit });
    const done = await app.call('POST', `/api/admin/questions/${id}/publish`, { admin: true });
    t.match(done.body.question, { status: 'open', ...edit });
    t.equal((await app.call('GET', `/api/questions/${id}`)).status, 200);
    t.equal((await list(`${by_author}&status=draft`)).total, 1);
    t.equal((await list(by_author)).total, 2, 'every status');
  },
);

root.test('an agent follows what became of its suggestions', async (t) => {
  const { agent, suggest } = await setUp();
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push((await suggest(suggestion())).body.question.id);
  const [rejected, accepted] = ids;
  await suggest(suggestion(), await makeAgent(app, { human }));
  const path = `/api/admin/questions/${rejected}?reason=Nobody%20could%20tell.`;
  await app.call('DELETE', path, { admin: true });
  await app.call('POST', `/api/admin/questions/${accepted}/publish`, { admin: true });
  const statusOf = async (id: string | undefined) =>
    (await app.call('GET', `/api/questions/${id}`, { key: agent.key })).body.question?.status;
  t.same(await Promise.all(ids.map(statusOf)), [undefined, 'open', 'draft']);
  const { body: notices } = await app.call('GET', '/api/me/notifications', { key: agent.key });
  t.match(notices.notifications, [
    { type: 'suggestion.published', question_id: accepted, message: /night train.* is published/ },
    {
      type: 'suggestion.rejected',
      question_id: null,
      subject_id: rejected,
      message: /night train.* was rejected. Reason: Nobody could tell\.$/,
    },
  ]);
  const [act] = await app.sql`
    select reason from audit_log where act = 'question.reject' and subject_id = ${rejected ?? ''}`;
  t.equal(act?.['reason'], 'Nobody could tell.');
});

root.test('an agent of whatever tier may suggest', async (t) => {
  const { agent, suggest } = await setUp();
  await app.sql`update accounts set balance = -5 where agent_id = ${agent.id}`;
  t.equal((await suggest(suggestion())).status, 201);
});

root.test('a suggestion has to make sense: dates, options and taxonomy', async (t) => {
  const { suggest, count } = await setUp();
  const multi = { question_type: 'multi' };
  const cases: [Record<string, unknown>, string, string][] = [
    [{ closes_at: inDays(-1) }, 'INVALID_DATES', 'body.closes_at'],
    [{ opens_at: inDays(-9), closes_at: inDays(-1) }, 'INVALID_DATES', 'body.closes_at'],
    [{ closes_at: '2027-02-30' }, 'INVALID_REQUEST', 'body.closes_at'],
    [{ closes_at: '10000-01-01T00:00:00Z' }, 'INVALID_REQUEST', 'body.closes_at'],
    [{ closes_at: 1_900_000_000 }, 'INVALID_REQUEST', 'body.closes_at'],
    [{ opens_at: '1969-12-31T23:59:59Z' }, 'INVALID_REQUEST', 'body.opens_at'],
    [{ ...multi, options: ['Same', 'same '] }, 'INVALID_OPTIONS', 'body.options'],
    [{ ...multi, options: Array(11).fill('x') }, 'INVALID_REQUEST', 'body.options'],
    [{ ...multi, options: [1, 2] }, 'INVALID_REQUEST', 'body.options.0'],
    [{ category: 'nothing' }, 'INVALID_CATEGORY', 'body.category'],
    [{ category: '__proto__' }, 'INVALID_CATEGORY', 'body.category'],
    [{ category: 'technology' }, 'INVALID_SUBCATEGORY', 'body.subcategory'],
    [{ tags: ['#Nothing'] }, 'INVALID_TAG', 'body.tags'],
  ];
  for (const [fields, code, path] of cases) {
    const { status, body } = await suggest(suggestion(fields));
    const notices = [status, body.code, body.fields?.[0]?.path];
    t.same(notices, [400, code, path], JSON.stringify(fields).slice(0, 80));
  }
  t.equal(await count(), 0);
});

root.test('a suggestion without a closing time closes when it resolves', async (t) => {
  const { suggest } = await setUp();
  const open_ended = { ...suggestion(), closes_at: undefined, resolution_date: inDays(40) };
  const { status, body } = await suggest(open_ended);
  t.equal(status, 201, JSON.stringify(body));
  t.equal(body.question.closes_at, open_ended.resolution_date);
  t.equal(body.question.resolution_date, open_ended.resolution_date);
  const made = await app.call('POST', '/api/admin/questions', {
    admin: true,
    body: { ...open_ended, closes_at: null, publish: true },
  });
  t.match(made, { status: 201, body: { question: { closes_at: open_ended.resolution_date } } });
  const none = await suggest({ ...open_ended, resolution_date: undefined });
  t.match(none, {
    status: 400,
    body: {
      code: 'INVALID_REQUEST',
      error: /closes_at or resolution_date/,
      fields: [{ path: 'body.closes_at' }],
    },
  });
});

root.test(
  'so many suggestions of an agent wait for review, also when they come at once',
  async (t) => {
    const { agent, suggest } = await setUp();
    const all = await Promise.all(
      Array.from({ length: max_suggestions + 5 }, () => suggest(suggestion())),
    );
    t.equal(all.filter(({ status }) => status === 201).length, max_suggestions);
    for (const { body } of all.filter(({ status }) => status !== 201)) {
      t.match(body, { status: 409, code: 'SUGGESTION_LIMIT_REACHED' });
    }
    const other = await makeAgent(app, { human });
    t.equal((await suggest(suggestion(), other)).status, 201, 'everybody has a queue of their own');
    const [draft] = await app.sql`select id from questions where author_id = ${agent.id}`;
    await app.call('DELETE', `/api/admin/questions/${draft?.['id']}`, { admin: true });
    t.equal((await suggest(suggestion())).status, 201, 'one is decided');
    t.equal((await suggest(suggestion())).status, 409);
    await app.sql`
    update questions
    set opens_at = now() - interval '2 days', closes_at = now() - interval '1 day'
    where id = (select id from questions where author_id = ${agent.id} limit 1)`;
    t.equal((await suggest(suggestion())).status, 201, 'one can no longer be published');
  },
);

root.test('an author and its owner list what it suggested, in every status', async (t) => {
  const human = await makeHuman(app);
  const [agent, other] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
  const stranger = await makeAgent(app, { human: await makeHuman(app) });
  const ids: string[] = [];
  for (const { key } of [agent, other, stranger]) {
    const { body } = await app.call('POST', '/api/questions/suggest', { key, body: suggestion() });
    ids.push(body.question.id);
  }
  await app.call('POST', `/api/admin/questions/${ids[0]}/publish`, { admin: true });
  const list = async (who: object) => (await app.call('GET', '/api/me/suggestions', who)).body;
  t.match(await list({ key: agent.key }), {
    total: 1,
    suggestions: [{ id: ids[0], status: 'open', author: { id: agent.id, name: agent.name } }],
  });
  const { suggestions } = await list({ token: human.token });
  t.same(
    suggestions.map(({ id }: { id: string }) => id),
    [ids[1], ids[0]],
  );
});

root.test('everybody sees what was changed on a question and when, not by whom', async (t) => {
  const id = await makeOpenQuestion(app);
  const path = `/api/admin/questions/${id}`;
  await app.call('PATCH', path, { admin: true, body: { description: 'By the first figure.' } });
  await app.call('POST', `${path}/close`, { admin: true });
  const { status, body } = await app.call('GET', `/api/questions/${id}/changes`);
  t.equal(status, 200);
  t.match(body.changes, [
    { act: 'question.close', changed: [] },
    { act: 'question.update', changed: ['description'] },
  ]);
  t.same(Object.keys(body.changes[0]).sort(), ['act', 'at', 'changed']);
  const draft = await makeOpenQuestion(app, { publish: false });
  t.equal((await app.call('GET', `/api/questions/${draft}/changes`)).status, 404);
});
