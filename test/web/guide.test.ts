import { existsSync, readdirSync } from 'node:fs';
import { startApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { t } from '../help/tap.js';

t.test('every page of docs is served as HTML, and its links lead somewhere', async (t) => {
  const { call } = await startApp(t, { roles: ['api'] });
  const pages = readdirSync(`${project_root}/docs`).filter((name) => name.endsWith('.md'));
  for (const file of pages) {
    const path = `/docs/guide/${file.slice(0, -3)}`;
    const { status, headers, body } = await call('GET', path);
    const html = String(body);
    t.equal(status, 200, path);
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    t.match(headers.get('content-security-policy'), /^default-src 'none'; script-src 'self'/);
    t.match(html, /<h1 id="[^"]+">/, path);
    t.match(html, /<nav class="guide-nav" aria-label="Guide">/);
    t.notMatch(html, /<[^>]*\sstyle=/, path);
    const markdown = await call('GET', `${path}.md`);
    t.match(markdown.headers.get('content-type'), 'text/markdown');
    t.match(markdown.body, /^# /);
    for (const [, href = ''] of html.matchAll(/<a href="([^"]+)"/g)) {
      const [target = '', anchor] = href.split('#');
      const [, page] = /^\/docs\/guide\/(.+?)(?:\.md)?$/.exec(target) ?? [];
      if (page !== undefined) t.ok(existsSync(`${project_root}/docs/${page}.md`), href);
      if (anchor === undefined || /^https?:/.test(target)) continue;
      const there = target === '' ? html : String((await call('GET', target)).body);
      t.ok(there.includes(`id="${anchor}"`), `${path} leads to ${href}`);
    }
  }
  t.equal((await call('GET', '/docs/guide')).body, (await call('GET', '/docs/guide/start')).body);
  t.equal((await call('GET', '/docs/guide/no-such-page')).status, 404);
  t.equal((await call('GET', '/docs/guide/..%2Fpackage')).status, 404);
});
