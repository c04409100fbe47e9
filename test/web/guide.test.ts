import { listGuidePages, listGuideSections } from '../../src/features/docs/index.js';
import { startApp } from '../help/app.js';
import { t } from '../help/tap.js';

t.test('every page of docs is served as HTML, and its links lead somewhere', async (t) => {
  const { call } = await startApp(t, { roles: ['api'] });
  const pages = listGuidePages();
  t.ok(pages.length > 20);
  for (const name of pages) {
    const path = `/docs/guide/${name}`;
    const { status, headers, body } = await call('GET', path);
    const html = String(body);
    t.equal(status, 200, path);
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    t.match(headers.get('content-security-policy'), /^default-src 'none'; script-src 'self'/);
    t.match(html, /<h1 id="[^"]+">/, path);
    t.match(html, /<nav [^>]*aria-label="Documentation">/);
    t.ok(html.includes(`<a href="${path}" aria-current="page">`), 'the list of pages marks it');
    t.notMatch(html, /<[^>]*\sstyle=/, path);
    const markdown = await call('GET', `${path}.md`);
    t.match(markdown.headers.get('content-type'), 'text/markdown');
    t.match(markdown.body, /^# /);
    for (const [, href = ''] of html.matchAll(/<a href="([^"]+)"/g)) {
      const [target = '', anchor] = href.split('#');
      const [, page] = /^\/docs\/guide\/(.+?)(?:\.md)?$/.exec(target) ?? [];
      if (page !== undefined) t.ok(pages.includes(page), href);
      if (anchor === undefined || /^https?:/.test(target)) continue;
      const there = target === '' ? html : String((await call('GET', target)).body);
      t.ok(there.includes(`id="${anchor}"`), `${path} leads to ${href}`);
    }
  }
  t.equal((await call('GET', '/docs/guide/no-such-page')).status, 404);
  t.equal((await call('GET', '/docs/guide/..%2Fpackage')).status, 404);
});

t.test('the first page leads to every page, in the groups of the contents', async (t) => {
  const { call } = await startApp(t, { roles: ['api'] });
  const { status, body } = await call('GET', '/docs');
  t.equal(status, 200);
  t.ok(Buffer.byteLength(String(body)) <= 60_000, `${Buffer.byteLength(String(body))} bytes`);
  for (const { title, pages } of listGuideSections()) {
    t.ok(body.includes(`<h3>${title}</h3>`), title);
    for (const { page } of pages) t.ok(body.includes(`href="/docs/guide/${page}"`), page);
  }
});

t.test('the examples have the address of this forum', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const { body } = await app.call('GET', '/docs');
  t.match(body, `${app.url}/api/register`);
  t.match(body, `${app.url}/downloads/prediction-forum-client-`);
  for (const page of listGuidePages()) {
    const html = String((await app.call('GET', `/docs/guide/${page}`)).body);
    t.notMatch(html, /https:\/\/forum\.example(?![.\w])/, page);
  }
  const own = String((await app.call('GET', '/docs/guide/start')).body);
  t.match(own, 'http://127.0.0.1:8080', "an operator's own forum keeps its address");
  const agent = String((await app.call('GET', '/docs/guide/daily-agent')).body);
  t.notMatch(agent, 'http://127.0.0.1:8080');
  t.equal((await fetch(`${app.url}/docs/guide`, { redirect: 'manual' })).status, 302);
});

t.test('code has colours, and images are served', async (t) => {
  const { call } = await startApp(t, { roles: ['api'] });
  const { body } = await call('GET', '/docs/guide/embedding');
  t.match(body, /<span class="hljs-name">iframe<\/span>/);
  const image = await call('GET', '/docs/images/chart.svg');
  t.equal(image.status, 200);
  t.equal(image.headers.get('content-type'), 'image/svg+xml');
  t.equal((await call('GET', '/docs/images/none.svg')).status, 404);
  t.equal((await call('GET', '/docs/images/..%2Fpackage.svg')).status, 404);
});
