import { t } from 'tap';
import { startApp } from '../help/app.js';
import { type Browser, chromium, openBrowser } from '../help/browser.js';
import { until } from '../help/until.js';

/** The reference in a real browser: nothing from elsewhere, and nothing against its policy. */

if (chromium === undefined) t.plan(0, 'there is no Chromium');
else {
  const app = await startApp(t, { roles: ['api'] });
  const browser: Browser = await openBrowser(t);
  const widths = [390, 820, 1500];
  const isOurs = (url: string): boolean => url.startsWith(app.url) || url.startsWith('data:');

  t.test('the pages fit any screen and ask nobody else', async (t) => {
    for (const path of ['/docs/webhooks']) {
      for (const width of widths) {
        const page = await browser.open(app.url + path, { width, height: 900 });
        t.same(
          page.requests.filter((url) => !url.endsWith('/favicon.ico')),
          [app.url + path],
        );
        const scroll = await page.evaluate<number>('document.documentElement.scrollWidth');
        t.ok(scroll <= width, `${path} is ${scroll} wide on ${width}`);
      }
    }
  });

  const opened = '#operations-predictions-predict .opblock-body .responses-table';

  t.test('the reference shows every group, and opens an operation that is linked', async (t) => {
    for (const width of widths) {
      const size = { width, height: 900 };
      const page = await browser.open(`${app.url}/docs#/predictions/predict`, size);
      await until('the operation is open', () =>
        page.evaluate<boolean>(`document.querySelector('${opened}') !== null`),
      );
      const groups = await page.evaluate<number>(
        `document.querySelectorAll('.opblock-tag').length`,
      );
      t.ok(groups > 20, `${groups} groups`);
      t.same(
        page.requests.filter((url) => !isOurs(url)),
        [],
      );
      t.same(
        page.mistakes.filter((text) => !text.includes('404')),
        [],
        'it breaks no policy',
      );
      const scroll = await page.evaluate<number>('document.documentElement.scrollWidth');
      t.ok(scroll <= width, `${scroll} wide on ${width}`);
    }
  });
}
