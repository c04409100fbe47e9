import { type CallOptions, no_limits, startApp, type TestApp } from '../help/app.js';
import { askOnce, openRaw, type RawAnswer } from '../help/raw-http.js';
import { openStores } from '../help/stores.js';
import {
  type Human,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/**
 * The cookie of a session, and the origin of the forms that it authenticates. `live` is behind an
 * HTTPS proxy and gets requests as that proxy sends them. `local` uses plain HTTP. Each case was
 * written from the documentation alone.
 */

const public_url = 'https://forum.example';
const stores = await openStores(t);
const env = { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };
const startAt = (address: Readonly<Record<string, string>>): Promise<TestApp> =>
  startApp(t, { roles: ['api'], env: { ...env, ...address }, stores });
const live = await startAt({ PUBLIC_URL: public_url });
const local = await startAt({});
const [ada, bob] = [await makeHuman(live), await makeHuman(live)];
const V = ada.token;

const password = 'correct horse battery';
const form_type = 'Content-Type: application/x-www-form-urlencoded';
const here = 'Host: forum.example';
const own = `Origin: ${public_url}`;

/** Asks `live` for a page, with these whole header lines. */
const open = (path: string, ...headers: readonly string[]): Promise<RawAnswer> =>
  askOnce(live.port, `GET ${path}`, { headers: [here, 'Accept: text/html', ...headers] });
const openLocal = (path: string, ...headers: readonly string[]): Promise<RawAnswer> =>
  askOnce(local.port, `GET ${path}`, { headers: ['Accept: text/html', ...headers] });

const post = (
  app: TestApp,
  path: string,
  fields: Readonly<Record<string, string>>,
  headers: readonly string[],
): Promise<RawAnswer> =>
  askOnce(app.port, `POST ${path}`, {
    headers: [form_type, 'Accept: text/html', ...headers],
    body: new URLSearchParams(fields).toString(),
  });

const logIn = (app: TestApp, { email }: Human, ...headers: readonly string[]) =>
  post(app, '/account/login', { email, password }, headers);

const cookieOf = ({ headers }: RawAnswer): string => headers['set-cookie'] ?? '';

/** The e-mail address of the person whose settings are shown. Empty if a login is needed. */
const whoseSettings = (answer: RawAnswer): string => {
  const { status, headers, text } = answer;
  if (status === 303 && headers['location']?.startsWith('/account/login?next=')) return '';
  if (status !== 200) throw new Error(`${status} ${text.slice(0, 200)}`);
  return [ada, bob].map(({ email }) => email).find((email) => text.includes(email)) ?? 'nobody';
};
const whoHas = async (...cookies: readonly string[]): Promise<string> =>
  whoseSettings(await open('/account/settings', ...cookies.map((one) => `Cookie: ${one}`)));
const whoHasLocal = async (cookie: string): Promise<string> =>
  whoseSettings(await openLocal('/account/settings', `Cookie: ${cookie}`));

const nameOf = async ({ email }: Human): Promise<string | null> => {
  const [row] = await live.sql<{ name: string | null }[]>`
    select name from humans where email = ${email}`;
  return row?.name ?? null;
};
let renamed = 0;
/** Sends the form that renames Ada, with her cookie. `is_done` is true if her name changed. */
const rename = async (
  headers: readonly string[],
  cookie = `__Host-session=${V}`,
): Promise<{ readonly answer: RawAnswer; readonly is_done: boolean }> => {
  renamed += 1;
  const name = `Ada ${renamed}`;
  const hosted = headers.some((line) => line.startsWith('Host:')) ? headers : [here, ...headers];
  const lines = [`Cookie: ${cookie}`, ...hosted];
  const answer = await post(live, '/account/settings', { act: 'name', name }, lines);
  return { answer, is_done: (await nameOf(ada)) === name };
};

/* The cookie itself. */

t.test('behind https the log-in sets one cookie, which only this host can set', async (t) => {
  const answer = await logIn(live, ada, here, own);
  t.equal(answer.status, 303);
  const [pair = '', ...attributes] = cookieOf(answer).split('; ');
  t.match(pair, /^__Host-session=hs_[^,]+$/);
  t.same(attributes.toSorted(), [
    'HttpOnly',
    'Max-Age=2592000',
    'Path=/',
    'SameSite=Lax',
    'Secure',
  ]);
});

t.test('on plain http its name is session, and it is not Secure', async (t) => {
  const cookie = cookieOf(await logIn(local, ada));
  t.match(cookie, /^session=hs_\S+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=2592000$/);
  t.equal(await whoHasLocal(cookie.split(';')[0] ?? ''), ada.email);
});

for (const spelling of ['HTTPS://Forum.Example', `${public_url}/`, `${public_url}:443`]) {
  t.test(`the address may be spelt ${spelling}`, async (t) => {
    const app = await startAt({ PUBLIC_URL: spelling });
    const cookie = cookieOf(await logIn(app, bob, here, own)).split(';')[0] ?? '';
    t.match(cookie, /^__Host-session=hs_/);
    const headers = [here, own, `Cookie: ${cookie}`];
    const answer = await post(app, '/account/settings', { act: 'name', name: spelling }, headers);
    t.equal(answer.status, 303);
    t.equal(await nameOf(bob), spelling);
    const socket = await connect(t, app.port, { headers: { cookie, origin: public_url } });
    t.equal((await until('the welcome', () => socket.frames[0]))['as'], 'human');
    await app.stop();
  });
}

t.test('only the name of the scheme counts', async (t) => {
  t.equal(await whoHas(`session=${V}`), '');
  t.equal(await whoHasLocal(`__Host-session=${V}`), '');
});

/* Cookies beside it. */

const right = `__Host-session=${V}`;
const alike = ['x__Host-session', '__Host-session2', '__host-session', '__HOST-SESSION'];
const strange = ['=__Host-session', 'my.__Host-session'];
const headers_of_ada: readonly string[] = [
  `session=junk; ${right}`,
  `${right}; session=junk`,
  `a=1;${right}`,
  `a=1;   ${right} ;b=2`,
  `${right};`,
  `;;${right}`,
  `a; ${right}`,
  ...[...alike, ...strange].map((name) => `${name}=${V}; ${right}`),
];
for (const cookie of headers_of_ada) {
  t.test(`the session counts in ${cookie.replaceAll(V, 'V')}`, async (t) => {
    t.equal(await whoHas(cookie), ada.email);
  });
}

const headers_of_nobody: readonly string[] = [
  `${right}; __Host-session=hs_junk`,
  `__Host-session=hs_junk; a=1; ${right}`,
  `${right}; ${right}`,
  `__Host-session=; ${right}`,
  '__Host-session=',
  ...[...alike, ...strange].map((name) => `${name}=${V}`),
];
for (const cookie of headers_of_nobody) {
  t.test(`nobody is logged in by ${cookie.replaceAll(V, 'V')}`, async (t) => {
    t.equal(await whoHas(cookie), '');
  });
}

t.test('two lines of cookies are one list', async (t) => {
  const twice = [right, `__Host-session=${bob.token}`];
  t.equal(await whoHas(...twice), '');
  t.equal(await whoHas(...twice.toReversed()), '');
  t.equal(await whoHas('a=1', right), ada.email);
  t.equal(await whoHas(right, 'a=1'), ada.email);
});

t.test('a text inside of another value is no cookie, and quotes hide no semicolon', async (t) => {
  t.equal(await whoHasLocal(`theme=session=abc; session=${V}`), ada.email);
  t.equal(await whoHasLocal(`ref="x; session=junk"; session=${V}`), '');
});

t.test('quotes belong to the value, for a page and for a socket', async (t) => {
  const cookie = `session="${V}"`;
  t.equal(await whoHasLocal(cookie), '');
  const socket = await connect(t, local.port, { headers: { cookie, origin: local.url } });
  t.equal((await until('the welcome', () => socket.frames[0]))['as'], 'anonymous');
});

t.test('a value that no session has is nobody', async (t) => {
  const values = ['%', '%E0%A4%A', V.replace('_', '%5F'), 'x'.repeat(6_144), 'hs_\xe9\xff\x80'];
  for (const value of values) {
    t.equal(await whoHasLocal(`session=${value}`), '', value.slice(0, 20));
  }
});

t.test('sixty other cookies may come with it, within the limit of headers', async (t) => {
  const others = (bytes: number): string =>
    Array.from({ length: 60 }, (_, n) => `c${n}=${'x'.repeat(bytes / 60 - 6)}`).join('; ');
  t.equal(await whoHas(`${others(7_000)}; ${right}`), ada.email);
  const { status, text } = await open('/account', `Cookie: ${others(9_000)}; ${right}`);
  t.equal(status, 431, text.slice(0, 200));
});

/* The origin of forms. */

t.test('a form of this site acts', async (t) => {
  for (const headers of [[own], [own, 'Sec-Fetch-Site: same-origin']]) {
    t.match(await rename(headers), { answer: { status: 303 }, is_done: true });
  }
});

const foreign: readonly string[] = [
  'http://forum.example',
  'null',
  'https://forum.example.evil.org',
  'https://evilforum.example',
  'https://sub.forum.example',
  'https://forum.example:8443',
  'https://forum.example@evil.org',
  '',
  'https://forum.example https://evil.org',
];
for (const origin of foreign) {
  t.test(`a form from "${origin}" is refused as a page, and changes nothing`, async (t) => {
    const { answer, is_done } = await rename([`Origin: ${origin}`]);
    t.equal(answer.status, 403);
    t.match(answer.headers['content-type'], /^text\/html/);
    t.match(answer.text, /403 CROSS_ORIGIN/);
    t.notOk(is_done);
  });
}

t.test('other headers do not say what the origin of this site is', async (t) => {
  const evil = 'evil.example';
  const named = await rename([`Host: ${evil}`, `Origin: https://${evil}`]);
  t.match(named, { answer: { status: 403 }, is_done: false });
  const forwarded = [`X-Forwarded-Host: ${evil}`, 'X-Forwarded-Proto: http'];
  t.match(await rename([...forwarded, own]), { answer: { status: 303 }, is_done: true });
  const refused = await rename([...forwarded, `Origin: http://${evil}`]);
  t.match(refused, { answer: { status: 403 }, is_done: false });
  const cookie = cookieOf(await logIn(live, ada, here, own, ...forwarded));
  t.match(cookie, /^__Host-session=.*; Secure$/);
});

t.test('a form from another site is refused, whatever its Origin', async (t) => {
  for (const site of ['cross-site', 'same-site']) {
    const headers = [`Sec-Fetch-Site: ${site}`];
    t.match(await rename(headers), { answer: { status: 403 }, is_done: false }, site);
    t.match(await rename([...headers, own]), { answer: { status: 403 }, is_done: false }, site);
  }
});

t.test('a log-in from another site is refused, and sets no cookie', async (t) => {
  const answer = await logIn(live, ada, here, 'Origin: https://evil.example');
  t.equal(answer.status, 403);
  t.equal(cookieOf(answer), '');
});

t.test('two cookies send no form', async (t) => {
  const created = await live.call('POST', '/api/webhooks', {
    token: V,
    body: { url: 'https://127.0.0.1:18443/hook', events: ['prediction.placed'] },
  });
  t.equal(created.status, 201, JSON.stringify(created.body));
  const path = `/account/webhooks/${created.body.webhook?.id ?? created.body.id}`;
  const headers = [here, own, `Cookie: ${right}; __Host-session=${bob.token}`];
  for (const [target, fields] of [
    ['/account/logout', {}],
    [path, { act: 'delete' }],
  ] as const) {
    t.equal(whoseSettings(await post(live, target, fields, headers)), '', target);
  }
  for (const human of [ada, bob]) {
    t.equal(await whoHas(`__Host-session=${human.token}`), human.email, 'it lives');
  }
  t.equal((await open(path, `Cookie: ${right}`)).status, 200, 'so does the webhook');
});

/* The cookie works only on pages. */

const callLive = (method: string, path: string, { headers, ...options }: CallOptions) =>
  live.call(method, path, { ...options, headers: { cookie: right, ...headers } });

t.test('the cookie is no credential of the API', async (t) => {
  for (const path of ['/api/me/sessions', '/api/auth/session', '/api/me/agents']) {
    const { status, body } = await callLive('GET', path, {});
    t.match({ status, body }, { status: 401, body: { code: 'MISSING_AUTH' } }, path);
  }
});

t.test('calls of the API are open to every origin, also beside a cookie', async (t) => {
  const headers = { origin: 'http://forum.example' };
  const body = { name: 'Registered elsewhere', model: 'm' };
  const registered = await live.call('POST', '/api/register', { body, headers });
  t.equal(registered.status, 201);
  t.equal(registered.headers.get('access-control-allow-origin'), '*');
  const { key } = await makeAgent(live, { human: ada });
  const id = await makeOpenQuestion(live);
  const placed = await callLive('POST', `/api/questions/${id}/predict`, {
    key,
    headers: { origin: 'https://other.example' },
    body: { prediction: true, confidence: 70, reasoning: makeReasoning() },
  });
  t.equal(placed.status, 201);
  t.equal(placed.headers.get('access-control-allow-origin'), '*');
});

t.test('a token acts for its own person, whoever the cookie belongs to', async (t) => {
  const before = await nameOf(ada);
  const { status } = await callLive('PATCH', '/api/me/account', {
    token: bob.token,
    headers: { origin: 'https://other.example' },
    body: { name: 'Bob himself' },
  });
  t.equal(status, 200);
  t.equal(await nameOf(bob), 'Bob himself');
  t.equal(await nameOf(ada), before);
});

t.test('a socket speaks for the cookie to a page of this scheme alone', async (t) => {
  const twice = `${right}; __Host-session=${bob.token}`;
  for (const [origin, cookie, as] of [
    ['http://forum.example', right, 'anonymous'],
    ['null', right, 'anonymous'],
    [public_url, right, 'human'],
    [public_url, twice, 'anonymous'],
    [public_url, `session=${V}`, 'anonymous'],
  ] as const) {
    const socket = await connect(t, live.port, { headers: { origin, cookie } });
    t.equal((await until('the welcome', () => socket.frames[0]))['as'], as, origin);
  }
});

t.test('a socket takes two lines of cookies for one list', async (t) => {
  const welcomed = async (...cookies: readonly string[]): Promise<string | undefined> => {
    const raw = openRaw(live.port);
    const headers = [
      ...[here, own, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...cookies.map((one) => `Cookie: ${one}`),
    ];
    raw.write(`GET /ws HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
    const [, as] = await until('the welcome', () => /"as":"(\w+)"/.exec(raw.rest));
    raw.reset();
    return as;
  };
  t.equal(await welcomed(right, 'a=1'), 'human');
  t.equal(await welcomed('a=1', right), 'human');
  t.equal(await welcomed(right, `__Host-session=${bob.token}`), 'anonymous');
});

/* Answers by cookie. */

t.test('the log-out forgets the cookie as it was set', async (t) => {
  for (const [app, name, more] of [
    [live, '__Host-session', '; Secure'],
    [local, 'session', ''],
  ] as const) {
    const { token } = await makeHuman(app);
    const cookie = `Cookie: ${name}=${token}`;
    const origin = app === live ? own : `Origin: ${local.url}`;
    const answer = await post(app, '/account/logout', {}, [here, origin, cookie]);
    const wanted = `${name}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0${more}`;
    t.equal(cookieOf(answer), wanted);
    const old = await askOnce(app.port, 'GET /account', { headers: ['Accept: text/html', cookie] });
    t.equal(whoseSettings(old), '', 'the session itself has ended');
  }
});

t.test('HEAD is answered as GET, with one cookie, two or none', async (t) => {
  const changing = /^(?:x-request-id|date|ratelimit)$/;
  const headersOf = ({ status, headers }: RawAnswer) => ({
    status,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !changing.test(name))),
  });
  for (const cookies of [[right], [right, right], []]) {
    const headers = [here, 'Accept: text/html', ...cookies.map((one) => `Cookie: ${one}`)];
    const got = await askOnce(live.port, 'GET /account', { headers });
    const head = await askOnce(live.port, 'HEAD /account', { headers });
    t.equal(head.text, '');
    t.same(headersOf(head), headersOf(got));
  }
});

t.test('a private page is stored nowhere, and a public one knows nobody', async (t) => {
  const id = await makeOpenQuestion(live);
  for (const cookies of [[`Cookie: ${right}`], []]) {
    const { headers } = await open('/account', ...cookies);
    t.equal(headers['cache-control'], 'no-store');
  }
  for (const path of ['/', `/questions/${id}`]) {
    const [known, unknown] = [await open(path, `Cookie: ${right}`), await open(path)];
    t.equal(known.text, unknown.text, path);
    t.equal(cookieOf(known), '');
  }
});
