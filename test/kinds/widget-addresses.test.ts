import { no_limits, startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { type Fields, placeOrThrow } from './world.js';

/**
 * Addresses of widgets and of oEmbed, their parameters and headers, without a browser. Each case
 * was written from the documentation alone.
 */

const public_url = 'https://forum.example';
const app = await startApp(t, {
  roles: ['api', 'relay'],
  env: { ...no_limits, PUBLIC_URL: public_url },
});
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const makeForecast = async (fields: Fields = {}): Promise<string> => {
  const id = await makeOpenQuestion(app, fields);
  await placeOrThrow(app, agent, id, { prediction: true, confidence: 70 });
  return id;
};
const id = await makeForecast();
const draft = await makeOpenQuestion(app, { publish: false });

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  app.call('GET', path, { headers });
const oembed = (address: string, more = '') =>
  get(`/oembed?url=${encodeURIComponent(address)}${more}`);

const addresses: readonly (readonly [address: string, wanted: RegExp])[] = [
  [`${public_url}/questions/${id}`, /\/embed\/[0-9a-f-]{36}/],
  [`${public_url}/questions/${id}/`, /\/embed\//],
  [`${public_url}/questions/${id}#comments`, /\/embed\//],
  [`${public_url}/questions/${id.toUpperCase()}`, /\/embed\//],
  [`${public_url}/embed/${id}?view=chart&theme=dark`, /view=chart&amp;theme=dark/],
  [`${public_url}/embed/leaderboard`, /\/embed\/leaderboard/],
];
for (const [address, wanted] of addresses) {
  t.test(`oEmbed gives a frame in a sandbox for ${address.replace(id, 'ID')}`, async (t) => {
    const { status, body } = await oembed(address);
    t.equal(status, 200);
    t.match(body, { type: 'rich', version: '1.0' });
    const frames = body.html.match(/<iframe [^>]*><\/iframe>/g);
    t.same(frames, [body.html]);
    t.match(body.html, wanted);
    t.match(body.html, new RegExp(`src="${public_url}/embed/`));
    t.match(body.html, /sandbox="allow-scripts[^"]*"/);
    t.notMatch(body.html, /allow-same-origin/);
    t.match(body.html, `width="${body.width}" height="${body.height}"`);
  });
}

t.test('a frame is within the room that there is', async (t) => {
  const { body } = await oembed(`${public_url}/questions/${id}`, '&maxwidth=320&maxheight=200');
  t.ok(body.width <= 320 && body.height <= 200);
  t.equal((await oembed(`${public_url}/questions/${id}`, '&maxwidth=1')).body.width, 1);
});

for (const room of ['0', '-5', 'abc', '1e9']) {
  t.test(`a width of ${room} is refused or ignored`, async (t) => {
    const { status, body } = await oembed(`${public_url}/questions/${id}`, `&maxwidth=${room}`);
    t.ok([200, 400].includes(status));
    t.notMatch(JSON.stringify(body), /NaN|Infinity/);
  });
}

const refusals: readonly (readonly [query: string, status: number])[] = [
  ['', 400],
  ['url=https%3A%2F%2Fother.example%2Fx', 404],
  [`url=${encodeURIComponent(`${public_url}/agents/x`)}`, 404],
  [`url=${encodeURIComponent(`${public_url}/questions/${draft}`)}`, 404],
  [`url=${encodeURIComponent(`${public_url}/questions/${id}`)}&format=xml`, 400],
  ['url=javascript%3Aalert(1)', 404],
];
for (const [query, wanted] of refusals) {
  t.test(`oEmbed answers ${wanted} to ${decodeURIComponent(query).slice(0, 60)}`, async (t) => {
    const { status, body } = await get(`/oembed?${query}`, { accept: 'text/html' });
    t.equal(status, wanted);
    t.match(body, { status: wanted, code: String });
  });
}

t.test('a title is text in the frame that oEmbed gives', async (t) => {
  const hostile = await makeForecast({
    question: `Will "><script>alert(1)</script>&' be the title of a frame?`,
  });
  const { body } = await oembed(`${public_url}/questions/${hostile}`);
  t.notMatch(body.html, /<script|title="[^"]*">[^<]/);
  t.match(body.html, '&quot;&gt;&lt;script');
});

const usual = (await get(`/embed/${id}`)).body;
for (const query of [
  'theme=auto',
  'theme=DARK',
  'theme=purple',
  'theme=',
  'theme[]=dark',
  'view=CARD',
  'view=x',
  'view=%22%3E%3Cscript%3E',
  'foo=1',
]) {
  t.test(`the widget is the usual one with ${query}`, async (t) => {
    const { status, body } = await get(`/embed/${id}?${query}`);
    t.equal(status, 200);
    t.equal(body, usual);
  });
}

t.test('known values choose the view and the theme', async (t) => {
  const seen = new Set<string>();
  for (const query of ['theme=dark', 'theme=light', 'view=compact', 'view=chart']) {
    const { status, body } = await get(`/embed/${id}?${query}`);
    t.equal(status, 200);
    seen.add(body);
  }
  t.equal(seen.add(usual).size, 5);
});

t.test('everybody gets the same bytes, which may be in a frame', async (t) => {
  const before = await get(`/embed/${id}`);
  for (const headers of [
    { cookie: `__Host-session=${human.token}` },
    { cookie: `__Host-session=${human.token}; __Host-session=x` },
    { accept: 'application/json' },
    { 'accept-encoding': 'gzip' },
  ] as readonly Readonly<Record<string, string>>[]) {
    const { status, headers: got, body } = await get(`/embed/${id}`, headers);
    t.equal(status, 200);
    t.equal(body, before.body);
    t.match(got.get('content-type'), /^text\/html/);
    t.equal(got.get('set-cookie'), null);
    t.equal(got.get('x-frame-options'), null);
    t.match(got.get('content-security-policy'), /frame-ancestors \*/);
  }
  const etag = before.headers.get('etag') ?? '';
  t.equal((await get(`/embed/${id}`, { 'if-none-match': etag })).status, 304);
  const head = await app.call('HEAD', `/embed/${id}`);
  t.match([head.status, head.body, head.headers.get('etag')], [200, '', etag]);
});

const range = { min: 0, max: 900, unit: 'km' };
for (const [name, fields] of [
  ['a number', { question_type: 'numeric', range }],
  ['ten options', { question_type: 'multi', options: Array.from('abcdefghij', (c) => `is ${c}`) }],
  ['a long title', { question: `Will ${'W'.repeat(480)} be built?` }],
  ['markup', { question: 'Will <b onclick="alert(1)">bold</b> & "quoted" text be shown?' }],
] as readonly (readonly [string, Fields])[]) {
  t.test(`a question with ${name} has a widget in each view and status`, async (t) => {
    const one = await makeOpenQuestion(app, fields);
    const look = async (): Promise<void> => {
      for (const view of ['card', 'chart', 'compact']) {
        const { status, body } = await get(`/embed/${one}?view=${view}`);
        t.equal(status, 200);
        t.notMatch(body, /<b onclick|undefined|NaN/);
      }
    };
    await look();
    await app.call('POST', `/api/admin/questions/${one}/close`, { admin: true, body: {} });
    await look();
    const body = { reason: 'It was asked twice.' };
    await app.call('POST', `/api/admin/questions/${one}/void`, { admin: true, body });
    await look();
  });
}

const board = (await get('/embed/leaderboard')).body;
for (const query of ['limit=0', 'limit=abc', 'by=nope', 'theme=nope']) {
  t.test(`the leaderboard is the usual one with ${query}`, async (t) => {
    const { status, body } = await get(`/embed/leaderboard?${query}`);
    t.equal(status, 200);
    t.equal(body, board);
  });
}

t.test('more rows than there may be are as many as there may be', async (t) => {
  t.equal(
    (await get('/embed/leaderboard?limit=1000')).body,
    (await get('/embed/leaderboard?limit=20')).body,
  );
});
