import { openModern } from '../features/mcp/world.js';
import { startApp } from '../help/app.js';
import { marked_texts } from '../help/hostile-texts.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { makeVisitor } from '../help/visitor.js';

/**
 * Every incoming text is checked for its length first, before any other work. Then it is checked
 * for runs of combining marks. Only then is it normalized and counted.
 */

const app = await startApp(t, { roles: ['api'] });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const question_id = await makeOpenQuestion(app);
const multi_id = await makeOpenQuestion(app, { question_type: 'multi', options: ['One', 'Two'] });
const closes_at = new Date(Date.now() + 30 * 86_400_000).toISOString();
const accented = (count: number): string => `a${'\u0301'.repeat(count)}`;
const key = agent.key;
const visitor = makeVisitor(app.url, human.token);
const socket = await openCalls(t, app.port, { 'x-api-key': key });
const mcp = await openModern(t, app.url, key);
await mcp.connect();
const refused = /[Mm]ust have at most|name must have 2 to|combining marks/;
const nothing = '01900000-0000-7000-8000-000000000000';
const words = 'A text of words';
const sentence = 'Because the gauge above the weir has been rising since March.';
const draft = {
  question: 'Will the reading room open in the autumn?',
  category: 'society',
  closes_at,
};

const comments = `/api/questions/${question_id}/comments`;
const predict = `/api/questions/${question_id}/predict`;
const forecast = { probability: 62, reasoning: makeReasoning() };
const reasoning = `${makeReasoning()}\n\n`;
const placed = await app.call('POST', `/api/questions/${await makeOpenQuestion(app)}/predict`, {
  key,
  body: forecast,
});
const prediction_id: string = placed.body.prediction.id;
const commented = await app.call('POST', comments, { key, body: { content: sentence } });
const comment_id: string = commented.body.comment.id;
const reply = `/api/questions/${placed.body.prediction.question_id}/predictions/${prediction_id}/reply`;

interface Place {
  readonly method?: string;
  readonly path: string;
  readonly as?: object;
  /** The field that the refusal names. */
  readonly field: string;
  readonly body: (text: string) => object;
  /** Maximum number of characters. */
  readonly max?: number;
  /** Prefix that `body` adds to the text. */
  readonly prefix?: string;
}

const places: readonly Place[] = [
  {
    path: '/api/register',
    field: 'body.name',
    max: 50,
    body: (name) => ({ name, model: 'gpt-5' }),
  },
  {
    path: '/api/register',
    field: 'body.model',
    max: 100,
    body: (model) => ({ name: 'Some name', model }),
  },
  ...(
    [
      ['bio', 500],
      ['domain_focus', 500],
      ['philosophy', 280],
    ] as const
  ).map(([name, max]) => ({
    method: 'PATCH',
    path: '/api/me',
    as: { key },
    field: `body.${name}`,
    max,
    body: (text: string) => ({ [name]: text }),
  })),
  ...[comments, `/api/comments/${comment_id}/reply`, reply].map((path) => ({
    path,
    as: { key },
    field: 'body.content',
    max: 1_000,
    prefix: sentence,
    body: (text: string) => ({ content: sentence + text }),
  })),
  {
    path: predict,
    as: { key },
    field: 'body.reasoning',
    max: 10_000,
    prefix: reasoning,
    body: (text) => ({ ...forecast, reasoning: reasoning + text }),
  },
  {
    path: predict,
    as: { key },
    field: 'body.prior_basis',
    max: 2_000,
    body: (text) => ({ ...forecast, prior_basis: text }),
  },
  {
    method: 'PATCH',
    path: `/api/predictions/${prediction_id}`,
    as: { key },
    field: 'body.reason',
    max: 2_000,
    prefix: sentence,
    body: (text) => ({ probability: 70, reason: sentence + text }),
  },
  {
    path: `/api/questions/${question_id}/dispute`,
    as: { key },
    field: 'body.reason',
    max: 2_000,
    prefix: sentence,
    body: (text) => ({ reason: sentence + text, evidence_urls: ['https://e.org/a'] }),
  },
  {
    path: `/api/admin/disputes/${nothing}/resolve`,
    as: { admin: true },
    field: 'body.note',
    max: 5_000,
    prefix: sentence,
    body: (text) => ({ status: 'rejected', note: sentence + text }),
  },
  {
    path: `/api/admin/questions/${nothing}/resolve`,
    as: { admin: true },
    field: 'body.resolution_note',
    max: 5_000,
    body: (text) => ({ outcome: true, resolution_note: text }),
  },
  {
    path: `/api/admin/comments/${nothing}/hide`,
    as: { admin: true },
    field: 'body.reason',
    max: 2_000,
    prefix: sentence,
    body: (text) => ({ reason: sentence + text }),
  },
  {
    path: '/api/auth/signup',
    field: 'body.name',
    max: 80,
    body: (name) => ({ email: 'someone@people.dev', password: 'a long enough one', name }),
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
  ...(
    [
      ['question', 500],
      ['description', 10_000],
      ['resolution_source', 500],
      // No maximum: an identifier for programs is not normalized.
      ['source', undefined],
    ] as const
  ).map(([name, max]) => ({
    path: '/api/admin/questions',
    as: { admin: true },
    field: `body.${name}`,
    ...(max === undefined ? {} : { max, prefix: words }),
    body: (text: string) => ({ ...draft, source_id: '1', source: 'x', [name]: words + text }),
  })),
  {
    path: '/api/admin/questions',
    as: { admin: true },
    field: 'body.options.1',
    max: 100,
    body: (text) => ({ ...draft, question_type: 'multi', options: ['A', text] }),
  },
  {
    path: '/api/admin/questions',
    as: { admin: true },
    field: 'body.tags.0',
    max: 50,
    body: (text) => ({ ...draft, tags: [text] }),
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
      t.match(refused.body.error, /more than 30 combining marks in a row; remove some of them/);
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

/** Accented words in NFD, with this many characters in NFC and no space at the ends. */
const accentedWords = (length: number): string =>
  `${'éàü '.repeat(length).slice(0, length - 1)}x`.normalize('NFD');

const aboutLength = /at most|characters|too long/i;

t.test('every limit counts the characters of the normal form', async (t) => {
  for (const { method = 'POST', path, as = {}, field, body, max, prefix = '' } of places) {
    if (max === undefined) continue;
    const name = `${path} ${field}`;
    const send = (text: string) => app.call(method, path, { ...as, body: body(text) });
    const room = max - prefix.length;
    const whole = await send(accentedWords(room));
    t.notMatch(whole.body.error ?? '', aboutLength, `${name}: ${JSON.stringify(whole.body)}`);
    t.ok(whole.status < 500, name);
    for (const text of [accentedWords(room + 1), 'x'.repeat(4 * max + 1 - prefix.length)]) {
      const { status, body: answered } = await send(text);
      t.equal(status, 400, `${name}: ${text.length} units`);
      t.match(answered.error, aboutLength, name);
    }
  }
});

/** Other ways to send a text, with the same rules. `send` returns the answer as a string. */
const ways: Readonly<
  Record<string, { readonly max: number; send(text: string): Promise<string> }>
> = {
  'a socket call': {
    max: 500,
    async send(bio) {
      const { body } = await socket.call('PATCH', '/api/me', { body: { bio } });
      return JSON.stringify(body);
    },
  },
  'an argument of a tool': {
    max: 2_000,
    async send(prior_basis) {
      const args = { question_id, ...forecast, prior_basis, dry_run: true };
      return JSON.stringify(await mcp.callTool('predict', args));
    },
  },
  'a form of a page': {
    max: 50,
    send: async (name) =>
      (await visitor.send('/account/agents', { act: 'register', name, model: 'gpt-5' })).text,
  },
  'an item of an import': {
    max: 100,
    async send(model) {
      const items = [{ name: 'Some importer', model }];
      const { body } = await app.call('POST', '/api/admin/agents/import', {
        admin: true,
        body: { items },
      });
      return JSON.stringify(body);
    },
  },
};

t.test('every way in has the same limits', async (t) => {
  for (const [name, { max, send }] of Object.entries(ways)) {
    t.notMatch(await send(accentedWords(max)), refused, name);
    t.match(await send(accentedWords(max + 1)), refused, name);
    t.match(await send('x'.repeat(4 * max + 1)), refused, name);
    t.match(await send(accented(31)), refused, name);
  }
});
