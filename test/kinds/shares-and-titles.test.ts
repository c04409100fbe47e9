import { no_limits, startApp } from '../help/app.js';
import { decide, predict } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { type Any, consensusOf, type Fields } from './world.js';

/**
 * Shares of a question without forecasts, and titles and other one-line names. Each case was
 * written from the documentation alone.
 */

const app = await startApp(t, { roles: ['api', 'relay'], env: no_limits });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const get = (path: string, accept = 'application/json') =>
  app.call('GET', path, { headers: { accept } });
const consensusNow = async (id: string): Promise<Any> =>
  (await get(`/api/questions/${id}/consensus`)).body;

/* Shares. */

const in_years = (n: number) => new Date(Date.now() + n * 365 * 86_400_000).toISOString();
const forms: Readonly<Record<string, Fields>> = {
  'yes or no': {},
  options: { question_type: 'multi', options: ['a', 'b', 'c'] },
  'a number': { question_type: 'numeric', range: { min: 0, max: 1000 } },
};
for (const [name, fields] of Object.entries(forms)) {
  t.test(`without a forecast there are no shares: ${name}`, async (t) => {
    const id = await makeOpenQuestion(app, fields);
    const one = await consensusNow(id);
    t.match(one, { total_predictions: 0, yes_count: 0, no_count: 0, effective_forecasters: 0 });
    for (const member of [
      ...['yes_percent', 'no_percent', 'avg_confidence', 'mean_probability', 'median_probability'],
      ...['p25', 'p75', 'by_owner_mean', 'pooled', 'forecast', 'leading_option'],
    ]) {
      t.equal(one[member], null, member);
    }
    t.same(one.histogram, Array(10).fill(0));
    t.same(one.model_breakdown, []);
    for (const option of one.options ?? []) {
      t.match(option, { count: 0, percent: null, mean_probability: null, avg_confidence: null });
    }
    const many = await app.call('POST', '/api/consensus/query', { body: { ids: [id] } });
    const listed = [
      (await get(`/api/questions/${id}`)).body.consensus,
      (await get(`/api/questions?ids=${id}&include=consensus,trend`)).body.questions[0].consensus,
      (await get(`/api/consensus?ids=${id}`)).body.consensus[0],
      many.body.consensus[0],
    ];
    for (const other of listed) {
      t.equal(other.yes_percent ?? null, null);
      t.equal(other.forecast ?? null, null);
      t.notMatch(JSON.stringify(other), /NaN/);
    }
  });

  t.test(`pages and pictures show no figure: ${name}`, async (t) => {
    const id = await makeOpenQuestion(app, fields);
    for (const path of [`/embed/${id}`, `/embed/${id}?view=compact`, `/questions/${id}`]) {
      const { status, body } = await get(path, 'text/html');
      t.equal(status, 200, path);
      const shown = body
        .replace(/<(script|style|head)\b[\s\S]*?<\/\1>/g, '')
        .replace(/<[^>]*>/g, ' ');
      t.notMatch(shown, /NaN|undefined|\bnull\b/, path);
      t.match(shown, /no (?:forecast|prediction)/i, path);
    }
    const svg = await get(`/api/questions/${id}/chart.svg`, '*/*');
    t.equal(svg.status, 200);
    t.notMatch(svg.body, /NaN|undefined/);
  });
}

t.test('one forecast of no is 0 and not null', async (t) => {
  const id = await makeOpenQuestion(app);
  await predict(app, agent, id, { prediction: false, confidence: 80 });
  t.match(await consensusOf(app, id, 1), {
    ...{ yes_percent: 0, no_percent: 100, mean_probability: 20 },
    model_breakdown: [{ yes_percent: 0 }],
  });
});

t.test('a number has no count of yes', async (t) => {
  const id = await makeOpenQuestion(app, forms['a number']);
  await predict(app, agent, id, {
    quantiles: [200, 400, 700].map((value, n) => ({ value, p: [10, 50, 90][n] })),
  });
  const one = await consensusOf(app, id, 1);
  t.match(one, { total_predictions: 1, yes_count: 0, no_count: 0 });
});

t.test('a hidden forecast counts', async (t) => {
  const id = await makeOpenQuestion(app);
  const pid = await predict(app, agent, id, { prediction: true, confidence: 90 });
  const body = { reason: 'A test of shares.' };
  await app.call('POST', `/api/admin/predictions/${pid}/hide`, { admin: true, body });
  t.match(await consensusOf(app, id, 1), { total_predictions: 1, yes_percent: 100 });
});

t.test('a question that was resolved without a forecast stays null', async (t) => {
  const id = await makeOpenQuestion(app);
  await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true, body: {} });
  t.equal((await decide(app, id, 'resolve', { outcome: true })).status, 202);
  t.match(await consensusNow(id), { total_predictions: 0, yes_percent: null, no_percent: null });
  for (const part of ['snapshots', 'intel-brief']) {
    const { status, body } = await get(`/api/questions/${id}/${part}`);
    t.equal(status, 200, part);
    t.notMatch(JSON.stringify(body), /NaN|"yes_percent":\d/);
  }
});

t.test('an agent without results has none', async (t) => {
  const { id } = await makeAgent(app, { human });
  const { status, body } = await get(`/api/agents/${id}`);
  t.equal(status, 200);
  t.notMatch(JSON.stringify(body), /"(?:accuracy|brier|log_score|ece)":\d|NaN/);
});

t.test('the history of a question without forecasts has no row', async (t) => {
  const id = await makeOpenQuestion(app);
  const read = async (format: string) =>
    (await get(`/api/export/consensus-history?question_id=${id}&format=${format}`)).body;
  t.equal(
    String(await read('csv'))
      .trim()
      .split('\n').length,
    1,
  );
  t.equal(String(await read('ndjson')).trim(), '');
});

t.test('a sealed question shows no share', async (t) => {
  const id = await makeOpenQuestion(app, { reveal: 'at_close' });
  const { status, body } = await get(`/api/questions/${id}/consensus`);
  t.equal(status, 200);
  t.equal(body.yes_percent ?? null, null);
});

/* Titles. */

const draft = (fields: object = {}) => ({
  question: 'Will a title be on one line?',
  ...{ category: 'society', subcategory: 'benefits_public_good', closes_at: in_years(1) },
  ...fields,
});
const publish = (fields: object) =>
  app.call('POST', '/api/admin/questions', {
    admin: true,
    body: { ...draft(fields), publish: true },
  });
const breaks = ['\n', '\r\n', '\r', '\t', '\u2028', '\u2029', '\u0085', '\v', '\f', ' \n ', '\n\n'];
const titles: readonly (readonly [sent: string, stored: string | null])[] = [
  ...breaks.map(
    (one) => [`Will the first${one}meet the second?`, 'Will the first meet the second?'] as const,
  ),
  ['\n  Will it rain tomorrow?\r\n', 'Will it rain tomorrow?'],
  ['\n'.repeat(11), null],
  [`a${'\n'.repeat(9)}b`, null],
  [`${'x'.repeat(250)}\n${'y'.repeat(249)}`, `${'x'.repeat(250)} ${'y'.repeat(249)}`],
];
for (const [sent, stored] of titles) {
  t.test(`a title is stored on one line: ${encodeURIComponent(sent).slice(0, 60)}`, async (t) => {
    const { status, body } = await publish({ question: sent });
    t.equal(status, stored === null ? 400 : 201);
    if (stored === null) t.equal(body.fields[0].path, 'body.question');
    else t.equal((await get(`/api/questions/${body.question.id}`)).body.question.question, stored);
  });
}

const single_lines: readonly (readonly [
  name: string,
  fields: object,
  read: (row: Any) => unknown,
  wanted: unknown,
])[] = [
  [
    'options',
    { question_type: 'multi', options: ['one\ntwo', 'three\t4'] },
    ({ options }) => options,
    ['one two', 'three 4'],
  ],
  [
    'a unit',
    { ...forms['a number'], range: { min: 0, max: 10, unit: 'million\ntons' } },
    ({ range }) => range.unit,
    'million tons',
  ],
];
for (const [name, fields, read, wanted] of single_lines) {
  t.test(`on one line: ${name}`, async (t) => {
    const { status, body } = await publish(fields);
    t.equal(status, 201, JSON.stringify(body));
    t.same(read(body.question), wanted);
  });
}

t.test('two options that look the same are refused', async (t) => {
  const { status, body } = await publish({ question_type: 'multi', options: ['a b', 'a\nb'] });
  t.match({ status, code: body.code }, { status: 400, code: 'INVALID_OPTIONS' });
});

t.test('a suggestion and an edit are treated alike', async (t) => {
  const question = 'Does a suggested\r\ntitle keep breaks?';
  const body = draft({ question });
  const sent = await app.call('POST', '/api/questions/suggest', { key: agent.key, body });
  t.equal(sent.status, 201, JSON.stringify(sent.body));
  const drafts = await app.call('GET', '/api/admin/questions?status=draft', { admin: true });
  const [found] = drafts.body.questions;
  t.equal(found.question, 'Does a suggested title keep breaks?');
  const edit = { question: 'New\ntitle of the draft?' };
  const path = `/api/admin/questions/${found.id}`;
  const edited = await app.call('PATCH', path, { admin: true, body: edit });
  t.match(edited, { status: 200, body: { question: { question: 'New title of the draft?' } } });
});

t.test('a search, the page and the log have the title on one line', async (t) => {
  const { body } = await publish({ question: 'Will alpha\nbeta unite?' });
  const found = (await get('/api/questions?q=%22alpha+beta%22')).body;
  t.same(
    found.questions.map(({ id }: Any) => id),
    [body.question.id],
  );
  const page = (await get(`/questions/${body.question.id}`, 'text/html')).body;
  t.match(page, /<title>[^<\n]*Will alpha beta unite\?[^<\n]*<\/title>/);
});

for (const [member, fields] of [
  ['name', { name: 'Two\nLines', model: 'm' }],
  ['name', { name: 'Two\u2028Lines', model: 'm' }],
  ['model', { name: 'Model One', model: 'claude-\nsonnet' }],
] as const) {
  t.test(`a break is refused in the ${member} of ${encodeURIComponent(fields.name)}`, async (t) => {
    const { status, body } = await app.call('POST', '/api/register', { body: fields });
    t.match({ status, code: body.code }, { status: 400, code: 'INVALID_REQUEST' });
    t.equal(body.fields[0].path, `body.${member}`);
  });
}

t.test("a person's name cannot begin another header", async (t) => {
  const body = { name: 'Ada\r\nBcc: x@example.org' };
  await app.call('PATCH', '/api/me/account', { token: human.token, body });
  const read = await app.call('GET', '/api/me/account', { token: human.token });
  t.notMatch(JSON.stringify(read.body), /\\[rn]/);
});

t.test('texts keep their breaks', async (t) => {
  const description = 'First line of it\n\nSecond\ttab of the description of this question.';
  const { body } = await publish({ description });
  t.equal(body.question.description, description);
  const content = 'First line of the comment about the reading room\nsecond line of it, in full.';
  const path = `/api/questions/${body.question.id}/comments`;
  const said = await app.call('POST', path, { key: agent.key, body: { content } });
  t.equal(said.body.comment.content, content);
  const bio = await app.call('PATCH', '/api/me', { key: agent.key, body: { bio: 'a\nb' } });
  t.match(JSON.stringify(bio.body), /"bio":"a\\nb"/);
});
