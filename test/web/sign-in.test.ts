import { no_limits, startApp } from '../help/app.js';
import { t } from '../help/tap.js';
import { makeVisitor, problemAt } from '../help/visitor.js';

/** From the first sign-up to a new password, with forms only. */

const app = await startApp(t, { roles: ['api'], env: no_limits });
const password = 'correct horse battery';

/** The path of the newest mailed link. */
const mailed = async (email: string): Promise<string> => {
  const { body } = await app.call('GET', '/dev/outbox');
  const mails = body as readonly { readonly to: string; readonly links: readonly string[] }[];
  const link = new URL(mails.find(({ to }) => to === email)?.links[0] ?? 'http://none/');
  return link.pathname + link.search;
};
const tokenOf = (path: string): string => new URL(path, app.url).searchParams.get('token') ?? '';

t.test('a person signs up, verifies, logs in and out again', async (t) => {
  const email = 'ada@example.org';
  const visitor = makeVisitor(app.url);
  const first = await visitor.open('/link');
  t.equal(first.path, '/account/login?next=%2Faccount%2Fagents', '/link leads to the log-in');
  t.match(first.text, /An agent can forecast once a person with a verified address has linked it/);
  const sent = await visitor.send('/account/signup', { email, password, name: 'Ada' });
  t.equal(sent.path, '/account/check-mail?email=ada%40example.org');
  t.match(sent.text, /An e-mail is on its way to ada@example.org/);
  t.match(sent.html, /href="\/dev\/outbox"/);
  t.match(
    (await visitor.send('/account/check-mail', { email })).text,
    /If this address has an account, a new e-mail/,
  );

  const link = await mailed(email);
  const opened = await visitor.open(link);
  t.match(opened.text, /Yes, this is my address/);
  t.equal(opened.headers.get('cache-control'), 'no-store');
  const read = async () => (await app.sql`select email_verified_at as at from humans`)[0]?.['at'];
  t.equal(await read(), null, 'opening the link changed nothing');
  const verified = await visitor.send('/auth/verify', { token: tokenOf(link) });
  t.ok(await read());
  t.match(verified.text, /Your address is verified. Log in to link an agent./);

  const next = '/account/agents?done=verified';
  const inside = await visitor.send('/account/login', { email, password, next });
  t.equal(inside.path, next);
  t.match(inside.text, /Now link or register an agent/);
  t.match((await visitor.open('/account')).text, /Hello Ada/);
  const { token } = /session=(?<token>hs_\S+)/.exec(visitor.state.cookie)?.groups ?? {};
  const out = await visitor.send('/account/logout', {});
  t.match(out.text, /You are logged out/);
  t.equal(visitor.state.cookie, '');
  const old = makeVisitor(app.url, token);
  t.match((await old.open('/account')).path, /^\/account\/login/, 'the session itself has ended');
});

t.test('the session cookie is out of reach of scripts and of other sites', async (t) => {
  const live = await startApp(t, {
    roles: ['api'],
    env: { ...no_limits, PUBLIC_URL: 'https://forum.example' },
  });
  const email = 'cookie@example.org';
  const set = async (app_: typeof app) => {
    await app_.call('POST', '/api/auth/signup', { body: { email, password } });
    const { headers } = await app_.call('POST', '/account/login', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ email, password }).toString(),
    });
    return headers.get('set-cookie') ?? '';
  };
  t.match(await set(app), /^session=hs_\S+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=2592000$/);
  t.match(await set(live), /^__Host-session=hs_\S+; Path=\/; [^,]*; Secure$/);
  t.notMatch(await set(live), /Domain/i);
  const foreign = await app.call('POST', '/account/login', {
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'cross-site',
      accept: 'text/html',
    },
    body: new URLSearchParams({ email, password }).toString(),
  });
  t.equal(foreign.status, 403);
  t.equal(foreign.headers.get('set-cookie'), null);
});

t.test('what is wrong stands at its field, and what was entered is kept', async (t) => {
  const visitor = makeVisitor(app.url);
  const at = (name: string, text: RegExp) => ({
    text,
    tied: true,
    invalid: true,
    focus: true,
    name,
  });
  const cases = [
    ['/account/signup', { email: 'nowhere', password }, at('email', /^Enter an e-mail address/)],
    [
      '/account/signup',
      { email: 'a@b.org', password: 'short' },
      at('password', /^Must have at least 10/),
    ],
    ['/account/signup', { email: 'a@b.org', password, name: 'n'.repeat(81) }, at('name', /80/)],
    ['/account/login', { email: 'a@b.org', password: '' }, at('password', /^Must not be empty/)],
    [
      '/account/login',
      { email: 'a@b.org', password },
      at('password', /address or the password is wrong/),
    ],
    ['/auth/reset', { token: 'hr_x', password: 'short' }, at('password', /^Must have at least 10/)],
  ] as const;
  for (const [path, form, { name, ...wanted }] of cases) {
    const shown = await visitor.send(path, form);
    t.ok(shown.status >= 400 && shown.status < 500, path);
    t.match(problemAt(shown, name), wanted, `${path} ${name}`);
    if ('email' in form) t.match(shown.html, `value="${form.email}"`);
    t.notMatch(shown.html, /value="correct horse/, 'no password is sent back');
    t.equal([...shown.html.matchAll(/ autofocus/g)].length, 1, 'one field has the focus');
  }
});

t.test('a link that is cut, used up or too old says so, and how to get another', async (t) => {
  const visitor = makeVisitor(app.url);
  for (const path of ['/auth/verify', '/auth/reset']) {
    t.match(await visitor.open(path), { status: 200, text: /This link is not complete/ });
    const form = { token: 'hv_gone', password };
    t.match(await visitor.send(path, form), { status: 400, text: /or has run out/ }, path);
    t.match(await visitor.send(path, {}), { status: 400, text: /This link is not complete/ });
  }
});

t.test('a forgotten password is replaced by a mailed link', async (t) => {
  const email = 'forgot@example.org';
  const visitor = makeVisitor(app.url);
  await visitor.send('/account/signup', { email, password });
  const answers = [];
  for (const one of [email, 'nobody@example.org']) {
    answers.push((await visitor.send('/account/forgot', { email: one })).text);
  }
  t.equal(answers[0], answers[1], 'known and unknown addresses');
  const link = await mailed(email);
  t.match((await visitor.open(link)).text, /This logs you out everywhere/);
  const set = { token: tokenOf(link), password: 'another battery' };
  t.match((await visitor.send('/auth/reset', set)).text, /The new password is set/);
  t.equal((await visitor.send('/account/login', { email, password })).status, 401);
  const inside = await visitor.send('/account/login', { email, password: 'another battery' });
  t.equal(inside.path, '/account');
});

t.test('after the log-in nobody is led to another site', async (t) => {
  const email = 'next@example.org';
  const visitor = makeVisitor(app.url);
  await visitor.send('/account/signup', { email, password });
  for (const next of ['https://evil.example/', '//evil.example', '/\\evil.example']) {
    const shown = await visitor.open(`/account/login?next=${encodeURIComponent(next)}`);
    t.notMatch(shown.html, /evil/);
    t.equal((await visitor.send('/account/login', { email, password, next })).path, '/account');
  }
});

t.test('names and addresses stay text', async (t) => {
  const visitor = makeVisitor(app.url);
  const evil = '"><script>alert(1)</script>';
  const pages = [
    await visitor.open(`/account/check-mail?email=${encodeURIComponent(evil)}`),
    await visitor.open(`/account/login?next=${encodeURIComponent(`/${evil}`)}`),
    await visitor.open(`/auth/verify?token=${encodeURIComponent(evil)}`),
    await visitor.send('/account/signup', { email: evil, name: evil, password }),
  ];
  for (const { html } of pages) t.notMatch(html, '<script>alert');
});
