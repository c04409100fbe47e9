import { t } from '../help/tap.js';
import { startToyApp } from '../help/toy-app.js';

/** The pipeline's work for page routes: who the visitor is, and which site sent a form. */

const cookie = 'a=b; session=person; c=d';
const form = 'application/x-www-form-urlencoded';
const html = 'text/html,application/xhtml+xml,*/*;q=0.8';

t.test('a page knows its visitor by the session cookie and by nothing else', async (t) => {
  const { call } = await startToyApp(t);
  t.match(await call('GET', '/mine', { headers: { cookie } }), { status: 200, body: 'p1' });
  for (const headers of [
    { authorization: 'Bearer person' },
    { 'x-api-key': 'right' },
    { 'x-admin-key': 'right' },
    { cookie: 'session=ended' },
    { cookie: 'other-session=person' },
    { cookie: '__Host-session=person' },
    { cookie: 'session=person; session=person' },
    { cookie: 'session=; a=b; session=person' },
  ]) {
    t.match(await call('GET', '/mine', { headers }), { status: 401, body: /^MISSING_AUTH / });
  }
  t.match(await call('GET', '/shown', { headers: { cookie } }), { body: 'anonymous' });
});

t.test('a form of this site is read, with every text of a field that comes twice', async (t) => {
  const { call, url } = await startToyApp(t);
  const send = (body: string, headers: Record<string, string> = {}) =>
    call('POST', '/mine', { body, headers: { cookie, 'content-type': form, ...headers } });
  const own = { origin: url, 'sec-fetch-site': 'same-origin' };
  const read = await send('name=a+b%0D%0Ac&tags=1&tags=2&more=x', own);
  t.match(JSON.parse(read.body), { name: 'a b\nc', tags: ['1', '2'] });
  t.equal((await send('name=a&tags=1')).status, 200, 'a program sends no origin');
  t.equal((await send('name=a&tags=1', { origin: 'http://forum' })).status, 200, 'PUBLIC_URL');
  t.match(await send(`name=${'x'.repeat(21)}&tags=1`), { status: 400 });
  t.match(await send('name=%00&tags=1'), { status: 400 });
  t.match(await send('__proto__=1&name=a&tags=1'), { status: 400 });
  t.match(await send('{}', { 'content-type': 'application/json' }), { status: 415 });
});

t.test('a form of another site is refused', async (t) => {
  const { call, url } = await startToyApp(t);
  for (const from of [
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-site', origin: url },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'https://forum' },
    { origin: url.replace('http:', 'https:') },
  ] as const) {
    const headers = { cookie, 'content-type': form, ...from };
    t.match(await call('POST', '/mine', { body: 'name=a&tags=1', headers }), {
      status: 403,
      body: /^CROSS_ORIGIN /,
    });
  }
});

t.test(
  'a refusal is a page where a page would be, and for a browser that found nothing',
  async (t) => {
    const { call } = await startToyApp(t);
    const accept = { accept: html };
    const refused = await call('GET', '/mine', { headers: accept });
    t.equal(refused.body, `MISSING_AUTH ${refused.headers.get('x-request-id')}`);
    t.equal(refused.status, 401);
    t.match((await call('GET', '/nowhere', { headers: accept })).body, /^NOT_FOUND /);
    t.match((await call('GET', '/nowhere')).body, { code: 'NOT_FOUND' }, 'a program gets JSON');
    t.match((await call('GET', '/api/nowhere', { headers: accept })).body, { code: 'NOT_FOUND' });
  },
);
