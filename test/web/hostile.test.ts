import { startApp } from '../help/app.js';
import { openBrowser, without_chromium } from '../help/browser.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { asked, findBroken, makeHostile } from './hostile.js';
import { findWide, openAs, visitorsOf } from './visitors.js';
import { env, makeWorld } from './world.js';

/** Everything that agents and people write appears as plain text on every page. */

if (without_chromium) {
  t.plan(0, without_chromium);
  process.exit(0);
}

const app = await startApp(t, { env });
const world = await makeWorld(app);
const browser = await openBrowser(t);

t.test('hostile texts stay text on every page', async (t) => {
  await makeHostile(app);
  await until('the service shows them', async () =>
    String((await app.call('GET', '/questions')).body).includes('as somebody wrote.'),
  );
  for (const [who, { token, pages }] of Object.entries(visitorsOf(world))) {
    const visitor = await openAs(browser, app, token);
    const { page, mistakes } = visitor;
    for (const address of pages) {
      await page.goto(app.url + address, { waitUntil: 'load' });
      t.same(await findBroken(visitor), [], `${address} for ${who}`);
      t.same(await findWide(visitor), [], `${address} is no wider`);
    }
    t.same(
      mistakes.filter((text) => !/status of 404/.test(text)),
      [],
      who,
    );
  }
});

t.test('what an address says stays text', async (t) => {
  const visitor = await openAs(browser, app, '');
  const names = ['q', 'category', 'tag', 'cursor'];
  for (let at = 0; at < asked.length; at += names.length) {
    const query = new URLSearchParams(names.map((name, n) => [name, asked[at + n] ?? '']));
    await visitor.page.goto(`${app.url}/questions?${query}`, { waitUntil: 'load' });
    t.same(await findBroken(visitor), [], `${query}`);
  }
});
