import { startApp } from '../help/app.js';
import { t } from '../help/tap.js';

const accept = 'text/html,*/*;q=0.8';

t.test('an address of nothing is a page with a search and the request id', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const { status, headers, body } = await app.call('GET', '/nix', { headers: { accept } });
  t.equal(status, 404);
  t.match(body, /<h1>Page not found<\/h1>/);
  t.match(body, `request <code>${headers.get('x-request-id')}</code>`);
  t.match(body, /<form action="\/search">/);
  t.equal(headers.get('cache-control'), 'no-store');
  const program = await app.call('GET', '/nix');
  t.match(program.body, { code: 'NOT_FOUND' });
});

t.test('too many requests are a page that says so, with when to come back', async (t) => {
  const app = await startApp(t, { roles: ['api'], env: { LIMIT_IP: '1' } });
  await app.call('GET', '/nix1', { headers: { accept } });
  await app.call('GET', '/', { headers: { accept } });
  const { status, headers, body } = await app.call('GET', '/?q=2', { headers: { accept } });
  t.equal(status, 429);
  t.match(headers.get('retry-after'), /^\d+$/);
  t.match(body, /<h1>Too many requests<\/h1>/);
  t.match(body, `Try again in ${headers.get('retry-after')} s`);
  const style = /href="(\/assets\/[^"]+\.css)"/.exec(body)?.[1] ?? '';
  for (const path of [style, '/favicon.svg', '/favicon.ico']) {
    const file = await app.call('GET', path);
    t.equal(file.status, 200, path);
    t.equal(file.headers.get('ratelimit'), null, 'no limit counts it');
  }
});
