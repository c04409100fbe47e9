import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import {
  type Browser,
  type BrowserContextOptions,
  chromium as driver,
  type Page,
} from 'playwright-core';
import { findChromium, no_chromium } from './chromium.js';
import type { Teardown } from './stores.js';

/** A headless Chromium, if the machine has one. */

/** Path of the executable. Tests that need it are skipped if it is missing. */
export const chromium = findChromium();
export const without_chromium = chromium === undefined && no_chromium;

export interface BrowserPage {
  /** Acts like a person: clicks, fills in fields, presses keys. */
  readonly page: Page;
  /** Evaluates an expression in the page. If the result is a promise, waits for it. */
  evaluate<T>(expression: string): Promise<T>;
  resize(width: number, height: number): Promise<void>;
  /** URLs that the page and its frames requested, in order. */
  readonly requests: readonly string[];
  /** Errors in the console, such as a policy violation or a script that threw. */
  readonly mistakes: readonly string[];
}

export interface PageOptions
  extends Pick<BrowserContextOptions, 'viewport' | 'colorScheme' | 'javaScriptEnabled'> {}

const watch = (page: Page): BrowserPage => {
  const requests: string[] = [];
  const mistakes: string[] = [];
  page.on('request', (request) => void requests.push(request.url()));
  page.on('websocket', (socket) => void requests.push(socket.url()));
  page.on('pageerror', (error) => void mistakes.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') mistakes.push(message.text());
  });
  return {
    page,
    requests,
    mistakes,
    evaluate: (expression) => page.evaluate(expression),
    resize: (width, height) => page.setViewportSize({ width, height }),
  };
};

const opened_size = { width: 400, height: 700 };

export const openBrowser = async (t: Teardown) => {
  const browser: Browser = await driver.launch({
    ...(chromium === undefined ? {} : { executablePath: chromium }),
    chromiumSandbox: false,
  });
  t.teardown(() => browser.close());
  return {
    /** A separate browser context, for example one without scripts. It closes with the browser. */
    context: (options: BrowserContextOptions) => browser.newContext(options),
    /** Opens one page as a new visitor. */
    async open(url: string, viewport = opened_size): Promise<BrowserPage> {
      const opened = watch(await browser.newPage({ viewport }));
      await opened.page.goto(url);
      return opened;
    },
    /** A visitor whose pages share cookies. The first page is still empty. */
    async visit(options: PageOptions = {}): Promise<BrowserPage> {
      const context = await browser.newContext({ viewport: opened_size, ...options });
      return watch(await context.newPage());
    },
  };
};

let axe_source: string | undefined;

/**
 * Problems that axe finds on the current page, best practices included: one line per element.
 * `colours` is enough for a page that was already checked in another theme.
 */
export const findBarriers = async (
  { page }: BrowserPage,
  of: 'all' | 'colours' = 'all',
): Promise<readonly string[]> => {
  axe_source ??= readFileSync(
    createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
    'utf8',
  );
  // Injected through the debugger, because the page's content policy does not apply to it.
  await page.evaluate(axe_source);
  const { violations } = await page.evaluate<AxeResults>(
    of === 'all' ? 'axe.run()' : `axe.run({ runOnly: ['color-contrast', 'link-in-text-block'] })`,
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
};
