import { markResolved, markVoided } from '../../../src/features/questions/index.js';
import { editable } from '../../../src/features/questions/rules.js';
import type { QuestionEdit, QuestionStatus } from '../../../src/features/questions/schema.js';
import { isFault } from '../../../src/kit/fault.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t as root } from '../../help/tap.js';
import { until } from '../../help/until.js';

const hour_ms = 3_600_000;
const inHours = (hours: number): string => new Date(Date.now() + hours * hour_ms).toISOString();
const inDays = (days: number): string => inHours(24 * days);

/** Runs without a timer, so all effects come from the calls. Each test has its own questions. */
const app = await startApp(root, { roles: ['api'] });

const patch = (id: string, body: unknown) =>
  app.call('PATCH', `/api/admin/questions/${id}`, { admin: true, body });

const stepsOf = (id: string) => {
  const post = (step: string, body: unknown = {}) =>
    app.call('POST', `/api/admin/questions/${id}/${step}`, { admin: true, body });
  const mark = async (what: 'resolved' | 'voided') => {
    const at = new Date();
    const done = await app.sql.begin((tx) =>
      what === 'resolved'
        ? markResolved(tx, {
            id,
            outcome: true,
            correct_options: null,
            outcome_value: null,
            note: 'Seen.',
            at,
          })
        : markVoided(tx, { id, note: 'No longer asked.', at }),
    );
    return isFault(done)
      ? { status: done.def.status, body: { code: done.def.code, error: done.message } }
      : { status: 200, body: { question: { status: done.status, revision: done.revision } } };
  };
  return {
    publish: () => post('publish'),
    close: () => post('close'),
    reopen: (body: unknown = { closes_at: inHours(2_000) }) => post('reopen', body),
    resolve: () => mark('resolved'),
    void: () => mark('voided'),
    delete: () => app.call('DELETE', `/api/admin/questions/${id}`, { admin: true }),
  };
};
type Step = keyof ReturnType<typeof stepsOf>;

const eventsOf = async (id: string): Promise<readonly string[]> => {
  const rows = await app.sql<{ event: string }[]>`
    select event from outbox where question_id = ${id} order by id`;
  return rows.map(({ event }) => event);
};

const statusOf = async (id: string): Promise<string> => {
  const [row] = await app.sql`select status from questions where id = ${id}`;
  return row === undefined ? 'gone' : String(row['status']);
};

/** The steps that lead to each status. */
const ways: Readonly<Record<QuestionStatus, readonly Step[]>> = {
  draft: [],
  open: ['publish'],
  closed: ['publish', 'close'],
  resolved: ['publish', 'close', 'resolve'],
  voided: ['publish', 'void'],
};

/** By status: the steps that are allowed, and the status that each step leads to. */
const allowed: Readonly<Record<string, Partial<Record<Step, string>>>> = {
  draft: { publish: 'open', delete: 'gone' },
  open: { close: 'closed', void: 'voided' },
  closed: { reopen: 'open', resolve: 'resolved', void: 'voided' },
  resolved: { resolve: 'resolved', void: 'voided' },
  voided: { resolve: 'resolved' },
};

const all_steps: readonly Step[] = ['publish', 'close', 'reopen', 'resolve', 'void', 'delete'];

root.test('every step from every status: those of the contract and no others', async (t) => {
  for (const [status, way] of Object.entries(ways)) {
    for (const step of all_steps) {
      const id = await makeOpenQuestion(app, { publish: false });
      const steps = stepsOf(id);
      for (const before of way) await steps[before]();
      t.equal(await statusOf(id), status);
      const events = await eventsOf(id);
      const answer = await steps[step]();
      const to = allowed[status]?.[step];
      const name = `${step} of a question that is ${status}`;
      t.equal(answer.status, to === undefined ? 409 : 200, name);
      t.equal(await statusOf(id), to ?? status, name);
      if (to !== undefined) continue;
      t.match(answer.body, { code: 'INVALID_TRANSITION', error: new RegExp(`is ${status}\\.$`) });
      t.same(await eventsOf(id), events, `${name} says nothing`);
    }
  }
});

root.test('a step answers with the question as it is then, and emits its event', async (t) => {
  const id = await makeOpenQuestion(app, { publish: false });
  const steps = stepsOf(id);
  t.same(await eventsOf(id), [], 'a draft is nobody’s business');
  t.match((await steps.publish()).body.question, { id, status: 'open', revision: 0 });
  const closed = await steps.close();
  t.match(closed.body.question, { id, status: 'closed' });
  const later = inHours(2_000);
  const reopened = await steps.reopen({ closes_at: later });
  t.match(reopened.body.question, {
    status: 'open',
    closes_at: later,
    resolution_date: later,
    timeframe: 'long',
  });
  const gaps = await app.sql`
    select from_at > now() - interval '1 minute' and from_at < to_at and to_at <= now() as is_right
    from closed_times where question_id = ${id}`;
  t.same([...gaps], [{ is_right: true }], 'scores leave out the time in between');
  await steps.close();
  t.match((await steps.resolve()).body, { question: { status: 'resolved', revision: 1 } });
  t.match((await steps.resolve()).body, { question: { status: 'resolved', revision: 2 } });
  t.same(await eventsOf(id), [
    'question.created',
    'question.closed',
    'question.reopened',
    'question.closed',
  ]);
  const shown = await app.call('GET', `/api/questions/${id}`);
  t.match(shown.body.question, { outcome: true, resolution_note: 'Seen.', revision: 2 });
  t.match(shown.body.question.resolved_at, /Z$/);
});

root.test('a draft opens when it is published, unless it is to open later', async (t) => {
  const fields = { publish: false, closes_at: inHours(500), resolution_date: inHours(29 * 24) };
  const past = await makeOpenQuestion(app, { ...fields, opens_at: inHours(-24 * 20) });
  const draft = await app.call('GET', `/api/questions/${past}`, { admin: true });
  t.equal(draft.body.question.timeframe, 'long');
  const before = new Date().toISOString();
  const { question } = (await stepsOf(past).publish()).body;
  t.ok(question.opens_at >= before, `${question.opens_at} is not before ${before}`);
  t.equal(question.timeframe, 'mid', 'from the opening that it got');

  const opens_at = inHours(48);
  const later = await makeOpenQuestion(app, { ...fields, opens_at });
  t.equal((await stepsOf(later).publish()).body.question.opens_at, opens_at);
});

root.test('a draft whose time has passed is not published', async (t) => {
  const times = { opens_at: inHours(-3), closes_at: inHours(-1) };
  const id = await makeOpenQuestion(app, { ...times, publish: false });
  const refused = await stepsOf(id).publish();
  t.match(refused, { status: 409, body: { code: 'INVALID_TRANSITION', error: /closes_at first/ } });
  t.equal(await statusOf(id), 'draft');
  t.same(await eventsOf(id), []);
});

root.test(
  'a question is reopened with a closing time that is later, in every respect',
  async (t) => {
    const closes_at = inHours(48);
    const id = await makeOpenQuestion(app, { closes_at, resolution_date: inHours(72) });
    const steps = stepsOf(id);
    await steps.close();
    const cases = [
      [{ closes_at }, 'INVALID_DATES', 'body.closes_at'],
      [{ closes_at: inHours(47) }, 'INVALID_DATES', 'body.closes_at'],
      [{ closes_at: inHours(-1) }, 'INVALID_DATES', 'body.closes_at'],
      [
        { closes_at: inHours(60), resolution_date: inHours(59) },
        'INVALID_DATES',
        'body.resolution_date',
      ],
      [{}, 'INVALID_REQUEST', 'body.closes_at'],
      [{ closes_at: 'soon' }, 'INVALID_REQUEST', 'body.closes_at'],
      [{ closes_at: null }, 'INVALID_REQUEST', 'body.closes_at'],
    ] as const;
    for (const [body, code, path] of cases) {
      const { status, body: refusal } = await steps.reopen(body);
      t.same(
        [status, refusal.code, refusal.fields[0].path],
        [400, code, path],
        JSON.stringify(body),
      );
    }
    t.equal(await statusOf(id), 'closed');
    const later = new Date(Date.parse(closes_at) + 1).toISOString();
    const { question } = (await steps.reopen({ closes_at: later })).body;
    t.match(question, { closes_at: later, status: 'open' });
    t.match(question.resolution_date > later, true, 'a later resolution stays where it is');
  },
);

root.test(
  'less than a day before its close a question is announced, once for each close',
  async (t) => {
    const id = await makeOpenQuestion(app, { publish: false, closes_at: inHours(24) });
    const steps = stepsOf(id);
    await steps.publish();
    const announced = ['question.created', 'question.closing_soon'];
    t.same(await eventsOf(id), announced, 'at publishing');
    await steps.close();
    await steps.reopen({ closes_at: inHours(24.1) });
    const reopened = ['question.closed', 'question.reopened'];
    t.same(await eventsOf(id), [...announced, ...reopened], 'more than a day is left');
    await steps.close();
    const closes_at = new Date(Date.now() + 24.2 * hour_ms).toISOString();
    await app.sql`
    update questions
    set opens_at = now() - interval '2 hours', closes_at = now() - interval '1 hour'
    where id = ${id}`;
    t.equal((await steps.reopen({ closes_at: inHours(23) })).status, 200);
    const at_reopening = [...announced, ...reopened, ...reopened, 'question.closing_soon'];
    t.same(await eventsOf(id), at_reopening, 'at reopening');
    await patch(id, { closes_at });
    await patch(id, { description: 'The same time.' });
    const edited = [...at_reopening, 'question.updated', 'question.updated'];
    t.same(await eventsOf(id), edited, 'far again');
    const soon = inHours(22);
    await patch(id, { closes_at: soon });
    await patch(id, { closes_at: soon, description: 'Once more.' });
    const last = ['question.updated', 'question.closing_soon', 'question.updated'];
    t.same(await eventsOf(id), [...edited, ...last], 'another close');
    const written = await app.sql<{ body: string }[]>`
    select body from outbox where question_id = ${id} order by id desc limit 2`;
    const [update, announcement] = written.map(({ body }) => JSON.parse(body).data);
    t.match(update, { changed: ['description'], closes_at: soon });
    t.equal(announcement.closes_at, soon);
  },
);

root.test(
  'predictions wait for the opening, end with the close and go on after a reopening',
  async (t) => {
    const human = await makeHuman(app);
    const id = await makeOpenQuestion(app, { opens_at: inHours(1) });
    const predict = async () => {
      const { key } = await makeAgent(app, { human });
      const body = { prediction: true, confidence: 70, reasoning: makeReasoning() };
      return app.call('POST', `/api/questions/${id}/predict`, { key, body });
    };
    t.match(await predict(), {
      status: 409,
      body: { code: 'QUESTION_NOT_OPEN', error: /opens at/ },
    });
    await app.sql`update questions set opens_at = now() - interval '1 second' where id = ${id}`;
    await until('the opening is seen', async () => (await predict()).status === 201, 3_000);
    const steps = stepsOf(id);
    await steps.close();
    t.match(await predict(), { status: 409, body: { code: 'QUESTION_NOT_OPEN' } });
    await steps.reopen();
    t.equal((await predict()).status, 201);
    const [row] = await app.sql`
    select count(*)::int as count from predictions where question_id = ${id}`;
    t.equal(row?.['count'], 2);
  },
);

root.test('a rejected suggestion and a dropped draft leave nothing behind', async (t) => {
  const id = await makeOpenQuestion(app, { publish: false });
  t.match(await stepsOf(id).delete(), { status: 200, body: { deleted: true, id } });
  t.equal((await stepsOf(id).delete()).status, 404);
  t.equal((await app.call('GET', `/api/questions/${id}`, { admin: true })).status, 404);
  t.same(await app.sql`select from question_counts where question_id = ${id}`, []);
});

root.test('a step of an unknown question is QUESTION_NOT_FOUND', async (t) => {
  for (const id of ['0190a000-0000-7000-8000-000000000000', 'nonsense']) {
    const steps = stepsOf(id);
    for (const step of ['publish', 'close', 'reopen', 'delete'] as const) {
      t.match(await steps[step](), { status: 404, body: { code: 'QUESTION_NOT_FOUND' } }, step);
    }
    t.match(await patch(id, { weight: 2 }), { status: 404, body: { code: 'QUESTION_NOT_FOUND' } });
  }
});

root.test('an imported question names its source wherever it is shown', async (t) => {
  const from = { source: 'survey', source_id: 'w2-17' };
  const body = {
    question: 'Will the imported ferry land before the tide turns?',
    category: 'society',
    closes_at: inHours(500),
    publish: true,
    ...from,
  };
  const made = await app.call('POST', '/api/admin/questions', { admin: true, body });
  t.match(made, { status: 201, body: { question: from } });
  const { id } = made.body.question;
  const known = await app.call('POST', '/api/admin/questions', { admin: true, body });
  t.match(known, { status: 200, body: { question: { id, ...from } } });
  t.match((await app.call('GET', `/api/questions/${id}`)).body.question, from);
  const listed = await app.call('GET', '/api/questions?q=imported+ferry');
  t.match(listed.body.questions, [{ id, ...from }]);
  t.match((await app.call('GET', `/api/questions/${id}`, { admin: true })).body.question, from);
  const closed = await stepsOf(id).close();
  t.match(closed.body.question, { status: 'closed', ...from });
  const own = await app.call('GET', `/api/questions/${await makeOpenQuestion(app)}`);
  t.match(own.body.question, { source: null, source_id: null });
});

const fields = {
  question: 'Will the reading room keep its evening hours?',
  closes_at: inDays(30),
  resolution_date: inDays(40),
};

/** A different value for each field. */
const edits = (): Required<Omit<QuestionEdit, 'question_type' | 'options' | 'range'>> => ({
  question: 'Will the reading room close its doors in the evening?',
  description: 'Evening means after six.',
  category: 'technology',
  subcategory: 'data',
  tags: ['#Privacy'],
  weight: 4,
  opens_at: inDays(1),
  closes_at: inDays(35),
  resolution_date: inDays(50),
  resolution_source: 'The house rules',
  resolution_url: 'https://reading-room.org/hours',
});

root.test('in each status what may be edited can be, and nothing else', async (t) => {
  for (const status of Object.keys(editable) as QuestionStatus[]) {
    const id = await makeOpenQuestion(app, { ...fields, publish: false });
    const steps = stepsOf(id);
    for (const step of ways[status]) await steps[step]();
    const before = (await app.call('GET', `/api/questions/${id}`, { admin: true })).body;
    for (const [name, value] of Object.entries(edits())) {
      const together = name === 'subcategory' ? { category: 'technology' } : {};
      const alone = name === 'category' ? { subcategory: null } : {};
      const answer = await patch(id, { [name]: value, ...together, ...alone });
      const say = `${name} of a question that is ${status}`;
      if (editable[status].includes(name as keyof QuestionEdit)) {
        t.equal(answer.status, 200, say);
        t.same(answer.body.question[name], value, say);
        continue;
      }
      t.match(answer, { status: 409, body: { code: 'QUESTION_NOT_EDITABLE' } }, say);
      t.ok(
        answer.body.fields.some(({ path }: { path: string }) => path === `body.${name}`),
        say,
      );
    }
    const same = await patch(id, { question: before.question.question, weight: 1 });
    if (status !== 'draft') t.equal(same.status, 200, 'what stays as it is, is no edit');
  }
});

root.test('an edit is checked like a new question, as a whole', async (t) => {
  const id = await makeOpenQuestion(app, { ...fields, publish: false });
  const cases: [Record<string, unknown>, string, string][] = [
    [{ question: 'Too short' }, 'INVALID_REQUEST', 'body.question'],
    [{ question: `  ${'x'.repeat(9)}   ` }, 'INVALID_REQUEST', 'body.question'],
    [{ question: null }, 'INVALID_REQUEST', 'body.question'],
    [{ weight: 6 }, 'INVALID_REQUEST', 'body.weight'],
    [{ weight: '2' }, 'INVALID_REQUEST', 'body.weight'],
    [{ closes_at: 'tomorrow' }, 'INVALID_REQUEST', 'body.closes_at'],
    [{ closes_at: null }, 'INVALID_REQUEST', 'body.closes_at'],
    [{ opens_at: inDays(31) }, 'INVALID_DATES', 'body.closes_at'],
    [{ resolution_date: inDays(29) }, 'INVALID_DATES', 'body.resolution_date'],
    [
      { closes_at: inDays(45), resolution_date: inDays(44) },
      'INVALID_DATES',
      'body.resolution_date',
    ],
    [{ options: ['a', 'b'] }, 'INVALID_OPTIONS', 'body.options'],
    [{ question_type: 'multi' }, 'INVALID_OPTIONS', 'body.options'],
    [{ question_type: 'multi', options: ['a', 'A'] }, 'INVALID_OPTIONS', 'body.options'],
    [{ category: 'technology' }, 'INVALID_SUBCATEGORY', 'body.subcategory'],
    [{ category: 'constructor' }, 'INVALID_CATEGORY', 'body.category'],
    [{ tags: ['#Nowhere'] }, 'INVALID_TAG', 'body.tags'],
  ];
  const [before] = await app.sql`select * from questions where id = ${id}`;
  for (const [body, code, path] of cases) {
    const answer = await patch(id, body);
    const refusal = [answer.status, answer.body.code, answer.body.fields?.[0]?.path];
    t.same(refusal, [400, code, path], JSON.stringify(body));
  }
  for (const nothing of [{}, { status: 'open' }, { source: 'x', publish: true }]) {
    t.match(await patch(id, nothing), { status: 400, body: { code: 'INVALID_REQUEST' } });
  }
  t.same((await app.sql`select * from questions where id = ${id}`)[0], before);
  const acts = await app.sql`
    select from audit_log where act = 'question.update' and question_id = ${id}`;
  t.same(acts, []);
});

root.test('a draft changes its kind, and its counters with it', async (t) => {
  const id = await makeOpenQuestion(app, { ...fields, publish: false });
  const multi = await patch(id, { question_type: 'multi', options: ['a', ' b ', 'c'] });
  t.match(multi.body.question, {
    question_type: 'multi',
    options: ['a', 'b', 'c'],
    option_counts: [
      { option: 'a', count: 0 },
      { option: 'b', count: 0 },
      { option: 'c', count: 0 },
    ],
  });
  const binary = await patch(id, { question_type: 'binary' });
  t.match(binary.body.question, { question_type: 'binary', options: [], option_counts: [] });
  const [row] = await app.sql`select option_counts from question_counts where question_id = ${id}`;
  t.same(row?.['option_counts'], []);
});

root.test('dates move together, and the timeframe with them', async (t) => {
  const id = await makeOpenQuestion(app, { closes_at: inDays(3) });
  const closes_at = inDays(20);
  const later = await patch(id, { closes_at });
  t.match(later.body.question, { closes_at, resolution_date: closes_at, timeframe: 'mid' });
  const resolution_date = inDays(90);
  const far = await patch(id, { resolution_date });
  t.match(far.body.question, { closes_at, resolution_date, timeframe: 'long' });
  const past = await patch(id, { closes_at: new Date(Date.now() - 1).toISOString() });
  t.match(past, { status: 400, body: { code: 'INVALID_DATES' } });
  const null_date = await patch(id, { resolution_date: null });
  t.equal(null_date.body.question.resolution_date, closes_at, 'resolved when it closes');
});

root.test(
  'an edit is written down with what it changed, and what changes nothing is not',
  async (t) => {
    const id = await makeOpenQuestion(app, fields);
    const before = await app.call('GET', `/api/questions/${id}`);
    const { updated_at } = before.body.question;
    const same = await patch(id, { description: '', tags: [], category: 'society' });
    t.equal(same.body.question.updated_at, updated_at);
    await patch(id, {
      description: 'By lantern light.',
      tags: ['#LLM', '#LLM'],
      subcategory: null,
    });
    const acts = await app.sql`
    select subject_id, details
    from audit_log
    where act = 'question.update' and question_id = ${id}`;
    t.same(acts, [
      { subject_id: id, details: { changed: ['description', 'subcategory', 'tags'] } },
    ]);
    const found = await app.call('GET', '/api/questions?q=lanterns');
    t.equal(found.body.total, 1, 'and the search knows it');
  },
);
