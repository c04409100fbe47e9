import { startApp } from '../help/app.js';
import { makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const headers = { accept: 'text/html' };

t.test('robots find the sitemap, and what is not theirs', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const { headers: got, body } = await app.call('GET', '/robots.txt');
  t.equal(got.get('content-type'), 'text/plain; charset=utf-8');
  t.match(body, 'Disallow: /admin\n');
  t.match(body, `Sitemap: ${app.url}/sitemap.xml\n`);
});

t.test('who finds a flaw finds a contact', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const { body } = await app.call('GET', '/.well-known/security.txt');
  t.match(body, `Contact: ${app.url}/about\n`);
  const ends = Date.parse(/Expires: (.*)/.exec(body)?.[1] ?? '');
  t.ok(ends > Date.now() + 300 * 86_400_000 && ends < Date.now() + 365 * 86_400_000);
  const env = { SECURITY_CONTACT: 'mailto:flaws@forum.example' };
  const other = await startApp(t, { roles: ['api'], env });
  const named = await other.call('GET', '/.well-known/security.txt');
  t.match(named.body, 'Contact: mailto:flaws@forum.example\n');
});

t.test('the status page says what works, also to those without a script', async (t) => {
  const app = await startApp(t);
  await makeOpenQuestion(app);
  const page = await until('nothing waits', async () => {
    const { status, body } = await app.call('GET', '/status', { headers });
    return status === 200 && body.includes('No backlog') && body;
  });
  t.match(page, '<h1>All systems are operational</h1>');
  t.match(page, /<th scope="row">Version<\/th><td>0\.1\.0<\/td>/);
});

t.test('the page about the forum and the search description are there', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  t.match((await app.call('GET', '/about', { headers })).body, 'About this forum');
  const { body } = await app.call('GET', '/opensearch.xml');
  t.match(body, `template="${app.url}/search?q={searchTerms}"`);
});
