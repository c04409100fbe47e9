import { createHash } from 'node:crypto';
import vm from 'node:vm';
import { t } from 'tap';
import { queueMail } from '../../../src/features/accounts/index.js';
import { faultsOf } from '../../../src/http/openapi.js';
import type { Route } from '../../../src/http/route.js';
import { sayFirst } from '../../../src/http/validation.js';
import { common_faults, faultBody, refuse } from '../../../src/kit/fault.js';
import { api_routes } from '../../../src/routes.js';
import { shared_script } from '../../../src/web/account-script.js';
import { secret_key, startApp } from '../../help/app.js';
import { openRaw } from '../../help/raw-http.js';
import { openCalls } from '../../help/socket-calls.js';
import { openPage } from './page-stub.js';

const forum = await startApp(t, { roles: ['api'] });

const linkTo = async (email: string): Promise<string> => {
  const { body } = await forum.call('GET', '/dev/outbox');
  const mails = body as { readonly to: string; readonly links: readonly string[] }[];
  return mails.find(({ to }) => to === email)?.links[0] ?? '';
};

const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

t.test('the pages run their own script and style and nothing else', async (t) => {
  for (const path of ['/link', '/auth/verify', '/auth/reset']) {
    const { status, headers, body } = await forum.call('GET', path);
    t.equal(status, 200, path);
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    const policy = headers.get('content-security-policy') ?? '';
    const script = /<script>([\s\S]*)<\/script>/.exec(body)?.[1] ?? '';
    const style = /<style>([\s\S]*?)<\/style>/.exec(body)?.[1] ?? '';
    t.ok(policy.includes(`script-src ${hashOf(script)};`), 'the hash is that of the script');
    t.ok(policy.includes(`style-src ${hashOf(style)};`));
    t.match(policy, /default-src 'none'.*form-action 'none'.*frame-ancestors 'none'/);
    t.notMatch(policy, /unsafe|\*/);
    t.notMatch(body, /\son[a-z]+=|\sstyle=|https?:\/\/|<script src|@import/);
    t.equal(headers.get('referrer-policy'), 'no-referrer');
    const ids = [...body.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id);
    t.equal(new Set(ids).size, ids.length, 'each id once');
    for (const [, wanted] of body.matchAll(/<label for="([^"]+)"/g)) t.ok(ids.includes(wanted));
    t.equal([...body.matchAll(/<input /g)].length, [...body.matchAll(/<label /g)].length);
  }
});

t.test('opening a mailed link changes nothing; its button does', async (t) => {
  const email = 'page@example.org';
  const body = { email, password: 'correct horse' };
  await forum.call('POST', '/api/auth/signup', { body });
  const link = await linkTo(email);
  t.ok(link.startsWith(`${forum.url}/auth/verify?token=hv_`), link);
  const page = await openPage(link);
  t.equal(page.address, `${forum.url}/auth/verify`, 'the token leaves the address bar');
  const verified = async () =>
    (await forum.call('POST', '/api/auth/login', { body })).body.user.email_verified;
  t.equal(await verified(), false);
  await page.fire('verify', 'submit');
  t.match(page.at('status'), { className: 'good', textContent: /verified/ });
  t.equal(page.at('next').hidden, false);
  t.equal(await verified(), true);
});

t.test('a page says in words for people what is wrong with what was entered', async (t) => {
  const gone = await openPage(`${forum.url}/auth/verify?token=hv_gone`);
  await gone.fire('verify', 'submit');
  t.match(gone.at('status'), { className: 'bad', textContent: /not valid or has expired/ });
  const page = await openPage(`${forum.url}/link`);
  for (const [path, form] of [
    ['/auth/verify', 'verify'],
    ['/auth/reset', 'reset'],
  ] as const) {
    const opened = await openPage(forum.url + path);
    if (form === 'reset') opened.fill('reset', { password: 'another horse' });
    await opened.fire(form, 'submit');
    t.match(opened.at('status'), { className: 'bad', textContent: /^This link is not complete/ });
  }
  const short = await openPage(`${forum.url}/auth/reset?token=hr_x`);
  short.fill('reset', { password: 'short' });
  await short.fire('reset', 'submit');
  t.match(short.at('status').textContent, /^Choose a password of 10/);
  page.fill('signup', { email: 'nowhere', password: 'correct horse' });
  await page.fire('signup', 'submit');
  t.match(page.at('status').textContent, /^Enter an e-mail address/);
});

t.test('no refusal of the account routes reaches a page in the words of the API', async (t) => {
  let refusal: Readonly<Record<string, unknown>> = {};
  const call = vm.runInNewContext(`${shared_script};call`, {
    location: { pathname: '/link', search: '' },
    document: { getElementById: () => ({}) },
    sessionStorage: { getItem: () => null },
    fetch: async () => ({ ok: false, json: async () => refusal }),
  }) as (method: string, path: string) => Promise<never>;
  const shown = async (body: Readonly<Record<string, unknown>>): Promise<string> => {
    refusal = body;
    return call('POST', '/api/auth/login').catch(({ message }: Error) => message);
  };
  const used = (api_routes as readonly Route[]).filter(({ path }) =>
    /^\/api\/(auth\/|me\/agents)/.test(path),
  );
  t.ok(used.length >= 9);
  const defs = new Set(used.flatMap(faultsOf).concat(Object.values(common_faults)));
  const technical = /\b(?:body|query|params|header)\b|\/api\/|key header|Bearer|JSON|–|request/i;
  for (const def of defs) {
    const message = await shown(faultBody(refuse(def), 'r'));
    t.notMatch(message, technical, def.code);
    t.ok(message.length > 20, message);
  }
  for (const route of used) {
    for (const name of Object.keys(route.body?.properties ?? {})) {
      const fields = [{ path: `body.${name}`, message: 'is required' }];
      const message = sayFirst('body', fields);
      const fault = refuse(common_faults.INVALID_REQUEST, { message, fields });
      t.notMatch(await shown(faultBody(fault, 'r')), technical, `${route.id} ${name}`);
    }
  }
});

t.test('a person signs up, verifies, logs in, links and unlinks on the pages', async (t) => {
  const email = 'browser@example.org';
  const page = await openPage(`${forum.url}/link`);
  t.equal(page.at('in').hidden, true);
  page.fill('signup', { email, password: 'short' });
  await page.fire('signup', 'submit');
  t.match(page.at('status'), { className: 'bad' });
  page.fill('signup', { email, password: 'correct horse' });
  await page.fire('signup', 'submit');
  t.match(page.at('status'), { className: 'good', textContent: /mail/ });
  page.fill('login', { email, password: 'wrong horse 1' });
  await page.fire('login', 'submit');
  t.match(page.at('status'), { className: 'bad', textContent: /not right/ });
  page.fill('login', { email, password: 'correct horse' });
  await page.fire('login', 'submit');
  t.equal(page.at('unverified').hidden, false);
  t.equal(page.at('link').hidden, true);
  t.equal(page.at('who').textContent, email);

  const mailed = await openPage(await linkTo(email));
  await mailed.fire('verify', 'submit');
  await page.fire('again', 'click');
  t.equal(page.at('unverified').hidden, true);

  const name = '<img src=x onerror=alert(1)>';
  const agent = await forum.call('POST', '/api/register', { body: { name, model: 'gpt-5' } });
  page.fill('link', { api_key: ` ${agent.body.api_key} ` });
  await page.fire('link', 'submit');
  t.match(page.at('status'), { className: 'good', textContent: /is linked/ });
  const [row] = page.at('agents').children;
  t.match(row?.children[0]?.textContent, name, 'shown as text');
  const me = await forum.call('GET', '/api/me', { key: agent.body.api_key });
  t.equal(me.body.user.trust_label, 'verified');

  const reloaded = await openPage(`${forum.url}/link`, new Map(page.storage));
  await row?.children[1]?.listeners.get('click')?.({
    target: row,
    preventDefault: () => undefined,
  });
  t.equal(page.at('agents').children.length, 0);
  t.ok(reloaded.storage.has('pf_token'), 'a reload keeps the session of the tab');
  await page.fire('logout', 'click');
  t.equal(page.storage.size, 0);
  t.equal(page.at('out').hidden, false);
});

t.test('the reset page sets a new password', async (t) => {
  const body = { email: 'reset@example.org', password: 'correct horse' };
  await forum.call('POST', '/api/auth/signup', { body });
  await forum.call('POST', '/api/auth/forgot', { body });
  const page = await openPage(await linkTo(body.email));
  t.equal(page.address, `${forum.url}/auth/reset`);
  page.fill('reset', { password: 'another horse' });
  await page.fire('reset', 'submit');
  t.match(page.at('status'), { className: 'good' });
  const log_in = (password: string) =>
    forum.call('POST', '/api/auth/login', { body: { ...body, password } });
  t.equal((await log_in('correct horse')).status, 401);
  t.equal((await log_in('another horse')).status, 200);
});

/** The status of the outbox for a request that was made for a host. */
const statusFor = async (port: number, host: string): Promise<number> => {
  const connection = openRaw(port);
  connection.write(`GET /dev/outbox HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const answer = await connection.next();
  connection.reset();
  return answer?.status ?? 0;
};

t.test('the outbox lists the newest 100 mails', async (t) => {
  const by = { config: { SECRET_KEY: secret_key }, at: new Date() };
  await forum.sql.begin(async (tx) => {
    for (let n = 1; n <= 101; n += 1) {
      const mail = { to: 'many@example.org', subject: `No ${n}`, text: '<b>&</b>', links: [] };
      await queueMail(tx, mail, by);
    }
  });
  const { status, body, headers } = await forum.call('GET', '/dev/outbox');
  t.equal(status, 200);
  t.equal(body.length, 100);
  t.equal(headers.get('cache-control'), 'no-store');
  t.match(body[0], { to: String, subject: String, text: String, links: [], created_at: /Z$/ });
});

t.test('a page of another site, or under another name, cannot read the outbox', async (t) => {
  for (const [site, status] of [
    ['cross-site', 404],
    ['same-site', 404],
    ['same-origin', 200],
  ] as const) {
    const headers = { 'sec-fetch-site': site };
    t.equal((await forum.call('GET', '/dev/outbox', { headers })).status, status, site);
  }
  const port = String(forum.port);
  for (const host of ['localhost', '127.0.0.1', '[::1]', `LOCALHOST:${port}`, `[::1]:${port}`]) {
    t.equal(await statusFor(forum.port, host), 200, host);
  }
  const foreign = ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '10.0.0.1'];
  for (const host of foreign) t.equal(await statusFor(forum.port, host), 404, host);
});

t.test('the outbox knows the name of PUBLIC_URL, and no socket reads it', async (t) => {
  const env = { PUBLIC_URL: 'http://forum.example:8080' };
  const named = await startApp(t, { roles: ['api'], env });
  t.equal(await statusFor(named.port, 'forum.example:8080'), 200);
  const socket = await openCalls(t, named.port, { host: 'evil.example' });
  for (const headers of [{}, { host: 'localhost' }]) {
    t.equal((await socket.call('GET', '/dev/outbox', { headers })).status, 404);
  }
});

t.test('production has no outbox', async (t) => {
  const live = await startApp(t, { roles: ['api'], env: { NODE_ENV: 'production' } });
  t.match(await live.call('GET', '/dev/outbox'), { status: 404, body: { code: 'NOT_FOUND' } });
});
