import { t as root, test } from 'tap';
import { editable } from '../../../src/features/questions/rules.js';
import type { QuestionEdit, QuestionStatus } from '../../../src/features/questions/schema.js';
import { startApp } from '../../help/app.js';
import { makeOpenQuestion } from '../../help/story.js';

const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
/** Each test has questions of its own. */
const app = await startApp(root, { roles: ['api'] });

const fields = {
  question: 'Will the reading room keep its evening hours?',
  closes_at: inDays(30),
  resolution_date: inDays(40),
};

/** Another value for each field. */
const edits = (): Required<Omit<QuestionEdit, 'question_type' | 'options'>> => ({
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

const bring = async (id: string, status: QuestionStatus): Promise<void> => {
  if (status === 'draft') return;
  await app.call('POST', `/api/admin/questions/${id}/publish`, { admin: true });
  if (status === 'open') return;
  await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true });
  if (status === 'closed') return;
  await app.sql`
    update questions
    set
      status = ${status},
      outcome = true,
      resolved_at = case when ${status} = 'resolved' then now() end,
      voided_at = case when ${status} = 'voided' then now() end
    where id = ${id}`;
};

const patch = (id: string, body: unknown) =>
  app.call('PATCH', `/api/admin/questions/${id}`, { admin: true, body });

test('in each status what may be edited can be, and nothing else', async (t) => {
  for (const status of Object.keys(editable) as QuestionStatus[]) {
    const id = await makeOpenQuestion(app, { ...fields, publish: false });
    await bring(id, status);
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

test('an edit is checked like a new question, as a whole', async (t) => {
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
    const told = [answer.status, answer.body.code, answer.body.fields?.[0]?.path];
    t.same(told, [400, code, path], JSON.stringify(body));
  }
  for (const nothing of [{}, { status: 'open' }, { source: 'x', publish: true }]) {
    t.match(await patch(id, nothing), { status: 400, body: { code: 'INVALID_REQUEST' } });
  }
  t.same((await app.sql`select * from questions where id = ${id}`)[0], before);
  const acts = await app.sql`
    select from audit_log where act = 'question.update' and question_id = ${id}`;
  t.same(acts, []);
});

test('a draft changes its kind, and its counters with it', async (t) => {
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

test('dates move together, and the timeframe with them', async (t) => {
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

test('an edit is written down with what it changed, and what changes nothing is not', async (t) => {
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
  t.same(acts, [{ subject_id: id, details: { changed: ['description', 'subcategory', 'tags'] } }]);
  const found = await app.call('GET', '/api/questions?q=lanterns');
  t.equal(found.body.total, 1, 'and the search knows it');
});
