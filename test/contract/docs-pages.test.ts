import { SaxesParser } from 'saxes';
import type { Test } from 'tap';
import { listGuidePages } from '../../src/features/docs/index.js';
import type { Operation } from '../../src/http/openapi.js';
import type { Route } from '../../src/http/route.js';
import { api_routes } from '../../src/routes.js';
import { startApp } from '../help/app.js';
import { type BrowserPage, openBrowser, without_chromium as skip } from '../help/browser.js';
import { openCalls } from '../help/socket-calls.js';
import { t } from '../help/tap.js';

/** The pages of the reference and the text for agents are complete, safe and correct. */

const app = await startApp(t, { roles: ['api'] });
const routes = (api_routes as readonly Route[]).filter(({ documented }) => documented);
const groups = [...new Set(routes.map(({ tag }) => tag))];
const pages = ['/docs', '/docs/api', ...groups.map((one) => `/docs/api/${one}`)];
const texts = new Map<string, string>();
for (const path of [...pages, '/docs/webhooks', '/llms.txt']) {
  texts.set(path, (await app.call('GET', path)).body);
}
const textOf = (path: string): string => texts.get(path) ?? '';

t.test('every operation of the document stands on the page of its group', async (t) => {
  const { body } = await app.call('GET', '/openapi.json');
  const shown = Object.values(body.paths as Record<string, Record<string, Operation>>).flatMap(
    (path) => Object.values(path),
  );
  t.same(shown.map((one) => one.operationId).sort(), routes.map(({ id }) => id).sort());
  for (const { operationId, tags } of shown) {
    t.match(textOf(`/docs/api/${tags[0]}`), `<h2 id="op-${operationId}">`, operationId);
  }
  for (const name of Object.keys(body.components.schemas)) {
    if (name.endsWith('Request')) continue;
    const places = groups.filter((one) => textOf(`/docs/api/${one}`).includes(`<h2 id="${name}">`));
    t.equal(places.length, 1, name);
  }
});

t.test('every id of a page is there once', async (t) => {
  for (const path of [...pages, ...listGuidePages().map((page) => `/docs/guide/${page}`)]) {
    const html = String(texts.get(path) ?? (await app.call('GET', path)).body);
    const ids = Array.from(html.matchAll(/<[^>]* id="([^"]+)"/g), ([, id = '']) => id);
    t.same(
      ids.filter((id, n) => ids.indexOf(id) !== n),
      [],
      path,
    );
  }
});

t.test('no page of the reference is large', async (t) => {
  for (const path of pages) {
    const bytes = Buffer.byteLength(textOf(path));
    t.ok(bytes <= 100_000, `${path}: ${bytes} bytes`);
  }
  t.equal((await app.call('GET', '/docs/api/nothing')).status, 404);
});

t.test('a page loads, runs and links to nothing from elsewhere', async (t) => {
  for (const path of pages) {
    const { headers, body } = await app.call('GET', path);
    const policy = headers.get('content-security-policy') ?? '';
    t.match(policy, /default-src 'none'/, path);
    t.notMatch(policy, /unsafe|https?:|\*/);
    t.notMatch(body, /<(?:iframe|object|embed|base)\b/);
    t.notMatch(body, /<[^>]*\s(?:style|on[a-z]+)=/);
    const elsewhere = Array.from(
      body.matchAll(/(?:href|src)="([a-z]+:[^"]*|\/\/[^"]*)"/g) as Iterable<RegExpMatchArray>,
      ([, at = '']) => at,
    ).filter((at) => !at.startsWith(app.url));
    t.same(elsewhere, [], path);
  }
});

/** Returns the first syntax error of a page, which is read as XML with void elements closed. */
const findBroken = (page: string): string | null => {
  const text = page
    .replace(/^<!doctype html>\n/, '')
    .replace(/<(meta|link|input|img|br|wbr)\b([^>]*?)\/?>/g, '<$1$2/>')
    .replace(/<[a-z][^>]*>/g, (tag) =>
      // Matches values too. A word in a value is not an attribute.
      tag.replace(/"[^"]*"|\s(?:hidden|open|async|required|checked|alt)(?=[\s/>])/g, (part) =>
        part.startsWith('"') ? part : `${part}=""`,
      ),
    );
  const parser = new SaxesParser();
  let problem: string | null = null;
  parser.on('error', (error) => {
    problem ??= error.message;
  });
  parser.write(text).close();
  return problem;
};

t.test('the pages are well-formed, and every link within them leads somewhere', async (t) => {
  t.not(findBroken('<!doctype html>\n<p><b>x</p>'), null);
  for (const path of pages) t.equal(findBroken(textOf(path)), null, path);
  const wanted = new Set<string>();
  for (const path of pages) {
    for (const [, href = ''] of textOf(path).matchAll(/href="([^"#]+)"/g)) wanted.add(href);
  }
  t.ok(wanted.size > 5);
  for (const href of wanted) {
    const { pathname, search } = new URL(href, app.url);
    if (pathname.startsWith('/account')) continue;
    t.equal((await app.call('GET', pathname + search)).status, 200, href);
  }
});

t.test('over the socket a page is its text, whatever coding is asked for', async (t) => {
  const socket = await openCalls(t, app.port);
  const headers = { 'accept-encoding': 'br, gzip' };
  for (const path of ['/docs', '/llms.txt', '/openapi.json'] as const) {
    const there = await app.call('GET', path);
    const here = await socket.call('GET', path, { headers });
    t.equal(here.status, 200, path);
    t.same(here.body, there.body, path);
    t.equal(here.headers.get('content-encoding'), null);
    t.equal(here.headers.get('content-type'), there.headers.get('content-type'));
  }
});

t.test('the signature with a timestamp is taught first, everywhere', async (t) => {
  for (const path of ['/docs/webhooks', '/llms.txt']) {
    const text = textOf(path);
    const [standard, older] = [text.indexOf('webhook-signature'), text.search(/X-Svc-Signature/i)];
    t.ok(standard > 0, path);
    t.ok(older === -1 || older > standard, path);
  }
});

t.test('every link of the guide leads somewhere, on its pages and in their Markdown', async (t) => {
  const { body: start } = await app.call('GET', '/docs');
  const guide = new Set(
    [...start.matchAll(/href="(\/docs\/guide\/[a-z-]+)"/g)].map(([, at]) => at),
  );
  t.ok(guide.size > 15);
  const read = async (target: string) => {
    const known = texts.get(target);
    if (known !== undefined) return { status: 200, body: known };
    const { status, body } = await app.call('GET', target);
    if (status === 200 && typeof body === 'string') texts.set(target, body);
    return { status, body };
  };
  const checkLink = async (page: string, link: string): Promise<void> => {
    const { pathname, search, hash, origin } = new URL(link, app.url + page);
    // Skips the pages that require a login, and URLs of other sites.
    if (/^\/account(?:\/notifications)?$/.test(pathname) || origin !== app.url) return;
    const { status, body } = await read(pathname + search);
    t.equal(status, 200, `${page}: ${link}`);
    if (hash !== '' && !pathname.endsWith('.md'))
      t.match(body, `id="${decodeURIComponent(hash.slice(1))}"`, link);
  };
  for (const page of guide as Set<string>) {
    const html = String((await read(page)).body);
    const markdown = String((await read(`${page}.md`)).body);
    for (const [, link = ''] of html.matchAll(/href="([^"]+)"/g)) await checkLink(page, link);
    for (const [, link = ''] of markdown.matchAll(/\]\(([^)\s]+)\)/g)) {
      await checkLink(`${page}.md`, link);
    }
  }
});

t.test('llms.txt has the form of llmstxt.org, and every link resolves', async (t) => {
  const text = textOf('/llms.txt');
  const [head = '', ...sections] = text.split(/^## /m);
  t.match(head, /^# [^\n]+\n\n> [^\n]+\n\n/);
  t.notMatch(head.slice(2), /^#/m, 'no other heading before the lists');
  for (const section of sections) {
    t.match(section, /^[^\n]+\n\n(?:- \[[^\]]+\]\(https?:\/\/[^)]+\)(?:: [^\n]+)?\n?)+\n*$/);
  }
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, url = '']) => new URL(url));
  t.ok(links.length > 20);
  for (const { pathname, search } of links) {
    // The page for linking an agent redirects to the login.
    const wanted = pathname === '/link' ? 303 : 200;
    t.equal((await app.call('GET', pathname + search)).status, wanted, pathname);
  }
  for (const [, path = ''] of text.matchAll(/`(?:GET|POST) (\/[\w/{}-]+)/g)) {
    t.ok(
      routes.some((route) => route.path === path),
      path,
    );
  }
});

/** Checks that the page is never wider than the screen. */
const fits = async (t: Test, page: BrowserPage): Promise<void> => {
  for (const width of [390, 820, 1500]) {
    await page.resize(width, 900);
    const scroll = await page.evaluate<number>('document.documentElement.scrollWidth');
    t.ok(scroll <= width, `${scroll} wide on ${width}`);
  }
};

t.test('in a browser the pages fit any screen and ask nobody else', { skip }, async (t) => {
  const browser = await openBrowser(t);
  const page = await browser.open(`${app.url}/docs/webhooks`);
  t.same(
    page.requests.filter((url) => !url.startsWith(`${app.url}/`)),
    [],
  );
  await fits(t, page);

  for (const path of ['/docs', '/docs/api', '/docs/api/predictions', '/docs/guide/architecture']) {
    const { page: shown, requests, mistakes } = await browser.open(`${app.url}${path}`);
    t.same(
      requests.filter((url) => !url.startsWith(app.url) && !url.startsWith('data:')),
      [],
    );
    t.same(mistakes, [], `${path} breaks no policy`);
    t.equal(await shown.locator('h1').count(), 1, path);
  }
  await fits(t, await browser.open(`${app.url}/docs`));
  await fits(t, await browser.open(`${app.url}/docs/api/predictions`));
});

t.test('in a browser a key fills the examples, each kind in its place', { skip }, async (t) => {
  const { page } = await (await openBrowser(t)).open(`${app.url}/docs/api/agents`);
  const textOf = (id: string) => page.locator(`#${id}-example`).textContent();
  t.match(await textOf('me'), '"X-API-Key: $API_KEY"');
  await page.locator('#key').fill('sk_$&mine');
  t.match(await textOf('me'), '"X-API-Key: sk_$&mine"');
  await page.locator('#key').fill('hs_session');
  t.match(await textOf('me'), '"X-API-Key: $API_KEY"', 'a session token is not an agent key');
  await page.locator('#key').fill('');
  t.match(await textOf('me'), '"X-API-Key: $API_KEY"');
  await page.goto(`${app.url}/docs/api/taxonomy`);
  t.match(await textOf('addTaxonomyTags'), '"X-Admin-Key: $ADMIN_KEY"');
});

t.test('in a browser the tabs and menus of the documents work', { skip }, async (t) => {
  const { page } = await (await openBrowser(t)).open(`${app.url}/docs`);
  const panel = (n: number) => page.locator(`#start-${n}`);
  t.ok(await panel(0).isVisible());
  await page.getByLabel('Python').check();
  t.same([await panel(0).isVisible(), await panel(1).isVisible()], [false, true]);
  await page.setViewportSize({ width: 375, height: 800 });
  const link = page.locator('.docs-nav').getByRole('link', { name: 'Overview' });
  t.notOk(await link.isVisible());
  await page.getByRole('button', { name: 'All pages' }).click();
  t.ok(await link.isVisible());
  await page.goto(`${app.url}/docs/guide/scoring`);
  await page.getByRole('button', { name: 'On this page' }).click();
  const heading = page.locator('.docs-toc a').last();
  await heading.click();
  t.notOk(await heading.isVisible(), 'the menu closes');
  t.match(page.url(), /#./);
});
