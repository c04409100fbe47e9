import { startApp } from '../help/app.js';
import { marked_texts } from '../help/hostile-texts.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/**
 * Every text that comes in is refused by its length before any other work is done on it, then by
 * the combining marks it has in a row, and only then normalised and counted.
 */

const app = await startApp(t, { roles: ['api'] });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const question_id = await makeOpenQuestion(app);
const multi_id = await makeOpenQuestion(app, { question_type: 'multi', options: ['One', 'Two'] });
const closes_at = new Date(Date.now() + 30 * 86_400_000).toISOString();
const accented = (count: number): string => `a${'\u0301'.repeat(count)}`;
const key = agent.key;
const sentence = 'Because the gauge above the weir has been rising since March.';
const draft = {
  question: 'Will the reading room open in the autumn?',
  category: 'society',
  closes_at,
};

const comments = `/api/questions/${question_id}/comments`;
const predict = `/api/questions/${question_id}/predict`;
const forecast = { probability: 62, reasoning: makeReasoning() };

interface Place {
  readonly method?: string;
  readonly path: string;
  readonly as?: object;
  /** The field that the refusal names. */
  readonly field: string;
  readonly body: (text: string) => object;
}

const places: readonly Place[] = [
  { path: '/api/register', field: 'body.name', body: (name) => ({ name, model: 'gpt-5' }) },
  { path: '/api/register', field: 'body.model', body: (model) => ({ name: 'Some name', model }) },
  ...['bio', 'domain_focus', 'philosophy'].map((name) => ({
    method: 'PATCH',
    path: '/api/me',
    as: { key },
    field: `body.${name}`,
    body: (text: string) => ({ [name]: text }),
  })),
  {
    path: comments,
    as: { key },
    field: 'body.content',
    body: (text) => ({ content: sentence + text }),
  },
  {
    path: predict,
    as: { key },
    field: 'body.reasoning',
    body: (text) => ({ ...forecast, reasoning: makeReasoning() + text }),
  },
  {
    path: predict,
    as: { key },
    field: 'body.prior_basis',
    body: (text) => ({ ...forecast, prior_basis: text }),
  },
  {
    path: predict,
    as: { key },
    field: 'body.selected_option',
    body: (text) => ({ ...forecast, selected_option: text }),
  },
  {
    path: predict,
    as: { key },
    field: 'body.evidence_urls.0',
    body: (text) => ({ ...forecast, evidence_urls: [`https://e.org/${text}`] }),
  },
  {
    path: predict,
    as: { key },
    field: 'body.resolution_protocol.how.0',
    body: (text) => ({ ...forecast, resolution_protocol: { how: [text] } }),
  },
  {
    path: `/api/questions/${multi_id}/predict`,
    as: { key },
    field: 'body.probabilities',
    body: (text) => ({ probabilities: { [text]: 100 }, reasoning: makeReasoning() }),
  },
  ...(['question', 'description', 'resolution_source', 'source'] as const).map((name) => ({
    path: '/api/admin/questions',
    as: { admin: true },
    field: `body.${name}`,
    body: (text: string) => ({
      ...draft,
      source_id: '1',
      source: 'x',
      [name]: `A text of words${text}`,
    }),
  })),
  {
    path: '/api/admin/questions',
    as: { admin: true },
    field: 'body.options.1',
    body: (text) => ({ ...draft, question_type: 'multi', options: ['A', text] }),
  },
  {
    path: '/api/auth/login',
    field: 'body.password',
    body: (password) => ({ email: 'a@people.dev', password }),
  },
  {
    path: '/api/auth/login',
    field: 'body.email',
    body: (text) => ({ email: `${text}@people.dev`, password: 'long enough' }),
  },
  {
    path: '/api/webhooks',
    as: { key },
    field: 'body.url',
    body: (text) => ({ url: `https://e.org/${text}`, events: ['question.resolved'] }),
  },
];

t.test(
  '31 combining marks in a row are refused by the name of the field, 30 are not',
  async (t) => {
    for (const { method = 'POST', path, as = {}, field, body } of places) {
      const refused = await app.call(method, path, { ...as, body: body(accented(31)) });
      t.equal(refused.status, 400, `${field}: ${JSON.stringify(refused.body)}`);
      t.match(refused.body, { fields: [{ path: field }] }, field);
      t.match(refused.body.error, /more than 30 combining marks in a row; leave some of them out/);
      const taken = await app.call(method, path, { ...as, body: body(accented(30)) });
      t.notMatch(taken.body.error ?? '', /combining marks/, field);
      t.ok(taken.status < 500);
    }
    const q = await app.call('GET', `/api/questions?q=${encodeURIComponent(accented(31))}`);
    t.match(q, { status: 400, body: { fields: [{ path: 'query.q' }] } });
  },
);

t.test('a text of marks alone is refused everywhere, whatever stands between them', async (t) => {
  for (const { method = 'POST', path, as = {}, field, body } of places) {
    for (const text of marked_texts) {
      const { status } = await app.call(method, path, { ...as, body: body(text) });
      t.ok(status === 400 || status === 413, `${field}: ${status}`);
    }
  }
});

t.test('what is too long is refused as that, with the code it has', async (t) => {
  const post = (content: string) => app.call('POST', comments, { key, body: { content } });
  for (const text of marked_texts.slice(0, 2)) {
    t.match(await post(text), { status: 400, body: { code: 'COMMENT_TOO_LONG' } });
  }
  const long = await app.call('PATCH', '/api/me', { key, body: { bio: accented(2_000) } });
  t.match(long.body.fields, [{ path: 'body.bio', message: 'must have at most 500 characters' }]);
});

t.test('a batch and an import refuse such an item by itself', async (t) => {
  const batch = await app.call('POST', '/api/predictions/batch', {
    key,
    body: {
      dry_run: true,
      predictions: [
        { question_id, ...forecast, prior_basis: accented(31) },
        { question_id, ...forecast },
      ],
    },
  });
  t.equal(batch.status, 200, JSON.stringify(batch.body));
  t.match(batch.body.results[0], { fields: [{ path: 'body.prior_basis' }] });
  t.notMatch(batch.body.results[1].error ?? '', /marks/);
  const items = [accented(31), 'An importer'].map((name) => ({ name, model: 'gpt-5' }));
  const made = await app.call('POST', '/api/admin/agents/import', { admin: true, body: { items } });
  t.equal(made.status, 200, JSON.stringify(made.body));
  t.match(made.body.results, [{ status: 'refused' }, { status: 'created' }]);
});

t.test('a text of exactly its limit passes in NFD, and one more does not', async (t) => {
  const filler = (least: string, length: number): string =>
    least + 'é'.repeat(length - least.length);
  const prior = places.find(({ field }) => field === 'body.prior_basis')!;
  const limits: readonly (readonly [Place, (length: number) => string, number])[] = [
    [places[0]!, (n) => filler('Name ', n), 50],
    [places[2]!, (n) => filler('', n), 500],
    [
      { ...prior, path: predict.replace(question_id, await makeOpenQuestion(app)) },
      (n) => filler('', n),
      2_000,
    ],
    [
      places.find(({ field }) => field === 'body.resolution_source')!,
      (n) => filler('', n - 15),
      500,
    ],
    [places.find(({ field }) => field === 'body.question')!, (n) => filler('', n - 15), 500],
    [places.find(({ field }) => field === 'body.description')!, (n) => filler('', n - 15), 10_000],
  ];
  for (const [{ method = 'POST', path, as = {}, field, body }, make, most] of limits) {
    const send = (length: number) =>
      app.call(method, path, { ...as, body: body(make(length).normalize('NFD')) });
    t.equal((await send(most + 1)).status, 400, `${field}: one more`);
    const taken = await send(most);
    t.ok(taken.status < 300, `${field}: ${JSON.stringify(taken.body)}`);
  }
  const words = 'alpha bravo charlie delta echo ';
  const content =
    words +
    'é'
      .repeat(10)
      .concat(' ')
      .repeat(100)
      .slice(0, 1_000 - words.length - 1) +
    'x';
  const posted = await app.call('POST', comments, {
    key,
    body: { content: content.normalize('NFD') },
  });
  t.not(posted.body.code, 'COMMENT_TOO_LONG', JSON.stringify(posted.body));
});
