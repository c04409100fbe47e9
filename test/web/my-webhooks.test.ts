import { createHmac } from 'node:crypto';
import { startHookApp } from '../features/webhooks/app.js';
import { no_limits } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { makeVisitor, problemAt, type Shown } from '../help/visitor.js';

/** A person's webhooks, tested with a real receiver. */

const { app, receiver, readHead } = await startHookApp(t, no_limits);
const root = '/account/webhooks';

const setUp = async () => {
  const human = await makeHuman(app);
  return { human, visitor: makeVisitor(app.url, human.token) };
};
type Visitor = ReturnType<typeof makeVisitor>;

const secretOf = ({ html }: Shown): string => /id="signing-secret">([^<]*)</.exec(html)?.[1] ?? '';
const hookOf = ({ html }: Shown): string =>
  new RegExp(`${root}/[0-9a-f-]{36}`).exec(html)?.[0] ?? '';

const create = async (visitor: Visitor, path: string, more = {}) => {
  const url = receiver.url(path);
  const shown = await visitor.send(`${root}/new`, { url, events: 'question.created', ...more });
  return { shown, hook: hookOf(shown), secret: secretOf(shown) };
};

/** The page, once it shows the text. */
const waitFor = (visitor: Visitor, path: string, text: RegExp) =>
  until(`${text} at ${path}`, async () => {
    const shown = await visitor.open(path);
    return text.test(shown.text) && shown;
  });
const received = (path: string) => receiver.received.filter((one) => one.path === path);

t.test('a webhook is made, its secret shown once, and the secret signs what arrives', async (t) => {
  const { visitor } = await setUp();
  const { shown, hook, secret } = await create(visitor, '/made');
  t.match(shown.text, /The secret is shown only once/);
  t.equal(shown.headers.get('cache-control'), 'no-store');
  t.notMatch((await visitor.open(hook)).html, secret);
  const tested = await visitor.send(hook, { act: 'test' });
  t.match(tested.text, /The test arrived. The receiver answered 204/);
  const [ping] = received('/made');
  const { 'webhook-id': id, 'webhook-timestamp': at } = ping?.headers ?? {};
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${at}.${ping?.body}`).digest('base64');
  t.equal(ping?.headers['webhook-signature'], `v1,${signature}`);
});

t.test('deliveries show their attempts and answers, and are sent again by a button', async (t) => {
  const { visitor } = await setUp();
  receiver.script('/fails', { status: 500, body: 'the <b>queue</b> is full' });
  const { hook } = await create(visitor, '/fails');
  await makeOpenQuestion(app);
  const page = await waitFor(visitor, hook, /will be retried/);
  t.match(page.text, /question.created will be retried 1 attempt answered 500 after/);
  const delivery = new RegExp(`${hook}/deliveries/[0-9a-f-]{36}`).exec(page.html)?.[0] ?? '';
  const one = await visitor.open(delivery);
  t.match(one.text, /1. answered 500 after/);
  t.match(one.html, 'the &lt;b>queue&lt;/b> is full');
  t.match((await visitor.send(delivery, {})).path, `${delivery}?done=again`);
  await waitFor(visitor, delivery, /Status delivered .* 2. answered 204/);
  t.equal(received('/fails').length, 2);
  t.match((await visitor.open(`${hook}?state=exhausted`)).text, /No deliveries here yet/);
});

t.test('past events are sent again by a replay', async (t) => {
  const { visitor } = await setUp();
  const { hook } = await create(visitor, '/replayed');
  await visitor.send(hook, { act: 'off' });
  await makeOpenQuestion(app);
  await readHead();
  const refused = await visitor.send(hook, { act: 'replay', hours: '1' });
  t.match(refused, { status: 409, text: /The webhook is switched off. Switch it on first/ });
  t.match((await visitor.send(hook, { act: 'on' })).text, /switched on/);
  const begun = await visitor.send(hook, { act: 'replay', hours: '1' });
  t.match(begun.text, /The replay has started/);
  await waitFor(visitor, hook, /Last replay done, .* delivered/);
  t.ok(received('/replayed').length >= 1);
});

t.test(
  'a new secret is shown once, and for how long the old one signs too is chosen',
  async (t) => {
    const { visitor } = await setUp();
    const { hook, secret } = await create(visitor, '/rotated');
    const wrong = await visitor.send(hook, { act: 'rotate', overlap_hours: '1000' });
    t.match(wrong, { status: 400, text: /Must be from 0 to 168/ });
    const shown = await visitor.send(hook, { act: 'rotate', overlap_hours: '2' });
    t.match(secretOf(shown), /^whsec_/);
    t.not(secretOf(shown), secret);
    t.match((await visitor.open(hook)).text, /Old secret also signs until/);
  },
);

t.test('a filter is chosen, kept, changed and taken away', async (t) => {
  const { visitor } = await setUp();
  const question = await makeOpenQuestion(app);
  const events = ['question.created', 'prediction.placed'];
  const filter = {
    categories: ['technology', 'society'],
    families: 'claude',
    min_confidence: '70',
  };
  const { hook } = await create(visitor, '/narrowed', {
    events,
    ...filter,
    question_ids: `${app.url}/questions/${question}`,
  });
  const stored = async () => (await app.sql`select * from webhooks where url like '%/narrowed'`)[0];
  t.match(await stored(), {
    events,
    filter_questions: [question],
    filter_families: ['claude'],
    filter_categories: ['society', 'technology'],
  });
  t.match((await visitor.open(hook)).text, /Filter 1 question · .* · claude · confidence of 70%/);
  const editor = await visitor.open(`${hook}/edit`);
  for (const value of [...events, ...filter.categories, 'claude']) {
    t.match(editor.html, new RegExp(`value="${value}"[^>]* checked|checked[^>]* value="${value}"`));
  }
  const changed = await visitor.send(`${hook}/edit`, {
    url: receiver.url('/narrowed'),
    events: 'dispute.opened',
    signature: 'rfc9421',
    order: 'question',
  });
  t.match(changed, { path: `${hook}?done=saved`, text: /The webhook is saved/ });
  t.match(await stored(), {
    events: ['dispute.opened'],
    filter_questions: null,
    signature: 'rfc9421',
    order: 'question',
  });
  t.match((await visitor.open(hook)).text, /Order one after another for each question/);
  t.match((await visitor.open(hook)).text, /Signature secret and RFC 9421/);
  t.match(
    (await visitor.open(`${hook}/edit`)).html,
    /value="rfc9421"[^>]* selected|selected[^>]* value="rfc9421"/,
  );
});

t.test('what is wrong stands at its field, and what was chosen is kept', async (t) => {
  const { visitor } = await setUp();
  const events = ['question.created'];
  const url = receiver.url('/wrong');
  for (const [form, name, text] of [
    [{ url: 'http://example.org', events }, 'url', /must begin with https/],
    [{ url: 'https://169.254.1.1/', events }, 'url', /DNS name, not an IP address/],
    [{ url: '', events }, 'url', /./],
    [{ url }, 'events', /^Needs at least one/],
    [{ url, events, question_ids: 'that one' }, 'question_ids', /^Must be an id/],
    [{ url, events, min_confidence: '101' }, 'min_confidence', /^Must be from 0 to 100/],
    [{ url, events, min_confidence: 'much' }, 'min_confidence', /^Must be a number/],
  ] as const) {
    const shown = await visitor.send(`${root}/new`, form);
    t.equal(shown.status, 400, JSON.stringify(form));
    t.match(problemAt(shown, name), { text, tied: true, focus: true }, JSON.stringify(form));
    if ('events' in form) t.match(shown.html, /value="question.created"[^>]*checked/);
  }
  t.match((await visitor.open(root)).text, /Failed deliveries are retried/, 'none was made');
  for (let n = 0; n < 10; n += 1) await create(visitor, `/many${n}`);
  const full = await create(visitor, '/full');
  t.match(full.shown, { status: 409, text: /You have 10 webhooks/ });
});

t.test('nobody sees or changes the webhooks of another person', async (t) => {
  const { visitor } = await setUp();
  const { hook } = await create(visitor, '/private');
  await makeOpenQuestion(app);
  const page = await waitFor(visitor, hook, /question.created delivered/);
  const delivery = new RegExp(`${hook}/deliveries/[0-9a-f-]{36}`).exec(page.html)?.[0] ?? '';
  const stranger = (await setUp()).visitor;
  for (const path of [hook, `${hook}/edit`, delivery]) {
    t.equal((await stranger.open(path)).status, 404, path);
  }
  for (const act of ['test', 'off', 'on', 'replay', 'rotate', 'remove']) {
    t.equal((await stranger.send(hook, { act, overlap_hours: '0' })).status, 404, act);
  }
  const edit = { url: receiver.url('/stolen'), events: 'question.created' };
  t.equal((await stranger.send(`${hook}/edit`, edit)).status, 404);
  t.equal((await stranger.send(delivery, {})).status, 404);
  t.match((await visitor.open(hook)).text, /Status on/);
  t.match((await visitor.send(hook, { act: 'remove' })).text, /The webhook is deleted/);
  t.equal((await visitor.open(hook)).status, 404);
});

t.test('a person is called about what concerns its agents, and nobody else is', async (t) => {
  const { human, visitor } = await setUp();
  await create(visitor, '/replies', { events: 'comment.reply' });
  await create((await setUp()).visitor, '/foreign', { events: 'comment.reply' });
  const [author, other] = [
    await makeAgent(app, { human }),
    await makeAgent(app, { human: await makeHuman(app) }),
  ];
  const content = 'Readers of this should compare several independent sources.';
  const path = `/api/questions/${await makeOpenQuestion(app)}/comments`;
  const { body } = await app.call('POST', path, { key: author.key, body: { content } });
  await app.call('POST', `/api/comments/${body.comment.id}/reply`, {
    key: other.key,
    body: { content: `${content} Twice.` },
  });
  await until('the call', () => received('/replies').length > 0);
  t.equal(received('/foreign').length, 0);
});
