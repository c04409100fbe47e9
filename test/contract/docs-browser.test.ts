import { t } from 'tap';
import { startApp } from '../help/app.js';
import { type Browser, chromium, openBrowser } from '../help/browser.js';

/** The reference in a real browser: nothing from elsewhere, nothing cut off, and a search. */

if (chromium === undefined) t.plan(0, 'there is no Chromium');
else {
  const app = await startApp(t, { roles: ['api'] });
  const browser: Browser = await openBrowser(t);
  const pages = ['/docs', '/docs/events', '/docs/webhooks'] as const;
  const shown = `[...document.querySelectorAll('.op')].filter((one) => !one.hidden)`;

  t.test('a page asks for itself alone, breaks no policy and fits any screen', async (t) => {
    for (const path of pages) {
      for (const width of [390, 820, 1500]) {
        const page = await browser.open(app.url + path, { width, height: 900 });
        const own = page.requests.filter((url) => !url.endsWith('/favicon.ico'));
        t.same(own, [app.url + path], path);
        t.same(
          page.mistakes.filter((text) => !text.includes('404')),
          [],
          path,
        );
        const scroll = await page.evaluate<number>('document.documentElement.scrollWidth');
        t.ok(scroll <= width, `${path} is ${scroll} wide on ${width}`);
        t.not(await page.evaluate<string>('getComputedStyle(document.body).margin'), '8px');
      }
    }
  });

  t.test('the search leaves what fits, and comes back to everything', async (t) => {
    const page = await browser.open(`${app.url}/docs`, { width: 1400, height: 900 });
    const type = (text: string) =>
      page.evaluate<number>(`(() => {
        const field = document.querySelector('.search');
        field.value = ${JSON.stringify(text)};
        field.dispatchEvent(new Event('input'));
        return ${shown}.length;
      })()`);
    const all = await type('');
    t.ok(all > 90, `${all} entries`);
    t.equal(await page.evaluate<boolean>(`document.querySelector('.search').hidden`), false);
    const some = await type('duplicate_prediction');
    t.ok(some > 0 && some < 6, `${some} of ${all}`);
    const ids = await page.evaluate<readonly string[]>(`${shown}.map(({ id }) => id)`);
    t.ok(ids.includes('predict'));
    t.equal(await type('no such words'), 0);
    t.equal(await type(''), all);
  });

  t.test('the search is reached by a key, and opens what it finds first', async (t) => {
    const page = await browser.open(`${app.url}/docs`, { width: 1400, height: 900 });
    const hash = await page.evaluate<string>(`(() => {
      const press = (key) => document.dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      press('/');
      const field = document.activeElement;
      field.value = 'getReceipt';
      field.dispatchEvent(new Event('input'));
      press('Enter');
      return location.hash;
    })()`);
    t.equal(hash, '#getReceipt');
  });
}
