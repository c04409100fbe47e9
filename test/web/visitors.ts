import { routes } from '../../src/web/index.js';
import type { TestApp } from '../help/app.js';
import type { BrowserPage, openBrowser } from '../help/browser.js';
import { accountPages, adminPages, publicPages, sign_in_pages } from '../help/pages.js';
import type { World } from './world.js';

/** The kinds of visitors, the pages that each sees, and how to open a page as a visitor. */

/** The pages that are documents for people, not parts of pages. */
export const documents = routes.filter(
  ({ method, path, produces, returns }) =>
    method === 'GET' &&
    produces !== 'application/json' &&
    200 in returns &&
    !/[.]|^\/(assets|cards|docs\/images)\//.test(path),
);
/** A pattern for the paths of a route. */
export const patternOf = (route: string): RegExp =>
  new RegExp(`^${route.replace(/\{\w+\}/g, '[^/?]+')}(?:\\?|$)`);

/** The pages that each kind of visitor sees. */
export const visitorsOf = (world: World) => {
  const { multi, numeric, date, resolved, voided, settled_prediction } = world;
  return {
    anybody: {
      token: '',
      pages: [
        ...publicPages(world),
        '/questions?q=harbour&status=all',
        '/questions?category=technology&sort=contested',
        ...[multi, numeric, date, resolved, voided].map((id) => `/questions/${id}`),
        `/predictions/${settled_prediction}`,
        ...sign_in_pages,
      ],
    },
    'a person': { token: world.person.token, pages: accountPages(world) },
    'an admin': {
      token: world.operator.token,
      pages: [...adminPages(world), `/admin/questions/${resolved}`],
    },
  };
};

type Browser = Awaited<ReturnType<typeof openBrowser>>;

/** Opens a page as a visitor with this session token. If the token is empty, logged out. */
export const openAs = async (
  browser: Browser,
  app: TestApp,
  token: string,
): Promise<BrowserPage> => {
  const visitor = await browser.visit();
  if (token !== '') {
    const cookie = { name: 'session', value: token, url: app.url, httpOnly: true };
    await visitor.page.context().addCookies([cookie]);
  }
  return visitor;
};

/** The outermost elements that stick out if the page is wider than the screen. */
export const findWide = ({ evaluate }: BrowserPage): Promise<readonly string[]> =>
  evaluate(`(() => {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    const wide = [...document.body.querySelectorAll('*')].filter(
      (one) => one.closest('.scroll, pre') === null && one.getBoundingClientRect().right > innerWidth + 1,
    );
    return wide.slice(0, 3).map((one) => one.outerHTML.slice(0, 200));
  })()`);
