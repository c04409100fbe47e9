import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { startApp } from '../help/app.js';
import { type BrowserPage, findBarriers, openBrowser, without_chromium } from '../help/browser.js';
import { project_root } from '../help/own-stores.js';
import { t } from '../help/tap.js';
import { documents, findWide, openAs, patternOf, visitorsOf } from './visitors.js';
import { env, makeWorld } from './world.js';

/**
 * Every page for people in a browser: accessible, on every screen size, in both themes, and without
 * violations of its content policy. `npm run shots` also takes a picture of each.
 */

if (without_chromium) {
  t.plan(0, without_chromium);
  process.exit(0);
}

const app = await startApp(t, { env });
const world = await makeWorld(app);
const browser = await openBrowser(t);
const visitors = visitorsOf(world);
const visit = (token: string) => openAs(browser, app, token);

/** A path that does not exist. */
const nowhere = '/nowhere';

const themes = ['light', 'dark'] as const;
const widths = [375, 768, 1_280];
const shots = process.env['SHOTS'] === 'true' ? path.join(project_root, '.data', 'shots') : null;

const ids = Object.entries(world).filter(([, id]) => typeof id === 'string');
/** `/questions/01a2…?sort=new` is `questions-resolved-sort-new`. */
const nameOf = (address: string): string =>
  ids
    .reduce((text, [name, id]) => text.replaceAll(String(id), name), address)
    .replace(/[^a-z0-9_]+/gi, '-')
    .replace(/^-|-$/g, '') || 'home';

const shoot = async ({ page, resize }: BrowserPage, address: string, theme: string) => {
  if (shots === null) return;
  mkdirSync(shots, { recursive: true });
  for (const width of widths) {
    await resize(width, 900);
    await page.screenshot({
      path: path.join(shots, `${nameOf(address)}-${width}-${theme}.png`),
      fullPage: true,
      animations: 'disabled',
    });
  }
};

const narrow = 320;
const open_all = 'for (const one of document.querySelectorAll("details")) one.open = true;';
const examine = async (t: Test, visitor: BrowserPage, address: string): Promise<void> => {
  const { page, requests, mistakes, resize } = visitor;
  const [first_request, first_mistake] = [requests.length, mistakes.length];
  await resize(1_280, 900);
  await page.goto(app.url + address, { waitUntil: 'load' });
  for (const colorScheme of themes) {
    await page.emulateMedia({ colorScheme });
    await shoot(visitor, address, colorScheme);
  }
  await visitor.evaluate(open_all);
  for (const colorScheme of themes) {
    await page.emulateMedia({ colorScheme });
    const found = await findBarriers(visitor, colorScheme === 'dark' ? 'colours' : 'all');
    t.same(found, [], `${colorScheme}: axe finds nothing`);
  }
  await resize(narrow, 700);
  t.same(await findWide(visitor), [], `it fits ${narrow} pixels`);
  const is_own = (url: string): boolean =>
    /^(?:data|blob):/.test(url) || new URL(url).host === new URL(app.url).host;
  t.same(
    requests.slice(first_request).filter((url) => !is_own(url)),
    [],
    'it asks nobody else',
  );
  const expected = address === nowhere ? /status of 404/ : /^$/;
  const wrong = mistakes.slice(first_mistake).filter((text) => !expected.test(text));
  t.same(wrong, [], 'no script throws, no policy is broken');
};

for (const [who, { token, pages }] of Object.entries(visitors)) {
  t.test(`pages for ${who}`, async (t) => {
    const visitor = await visit(token);
    for (const address of pages) {
      await t.test(address, (t) => examine(t, visitor, address));
    }
  });
}

t.test('no page is left out', async (t) => {
  const seen = Object.values(visitors).flatMap(({ pages }) => pages);
  const unseen = documents.filter(({ path }) => !seen.some((one) => patternOf(path).test(one)));
  t.same(
    unseen.map(({ path }) => path),
    [],
  );
});

t.test('nor is that of an address where nothing is', async (t) =>
  examine(t, await visit(''), nowhere),
);
