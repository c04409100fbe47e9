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

/** A headless Chromium, where the machine has one. */

/** Where it is; tests that need it are left out without it. */
export const chromium = findChromium();
export const without_chromium = chromium === undefined && no_chromium;

export interface BrowserPage {
  /** What a person does: clicks, fills in, presses keys. */
  readonly page: Page;
  /** The value of an expression in the page; a promise is waited for. */
  evaluate<T>(expression: string): Promise<T>;
  resize(width: number, height: number): Promise<void>;
  /** Addresses that the page asked for, in order, those of its frames included. */
  readonly requests: readonly string[];
  /** Mistakes in the console: a breach of the policy, a script that threw. */
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
    /** A window by itself, such as one without scripts; it ends with the browser. */
    context: (options: BrowserContextOptions) => browser.newContext(options),
    /** One page of a visitor of its own. */
    async open(url: string, viewport = opened_size): Promise<BrowserPage> {
      const opened = watch(await browser.newPage({ viewport }));
      await opened.page.goto(url);
      return opened;
    },
    /** A visitor, whose pages share cookies; the first of them is still empty. */
    async visit(options: PageOptions = {}): Promise<BrowserPage> {
      const context = await browser.newContext({ viewport: opened_size, ...options });
      return watch(await context.newPage());
    },
  };
};

let axe_source: string | undefined;

/**
 * What axe finds on the page as it is now, best practices included: one line an element. Of a page
 * that it has seen in another theme the colours are enough.
 */
export const findBarriers = async (
  { page }: BrowserPage,
  of: 'all' | 'colours' = 'all',
): Promise<readonly string[]> => {
  axe_source ??= readFileSync(
    createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
    'utf8',
  );
  // Through the debugger, which the policy of the page does not bind.
  await page.evaluate(axe_source);
  const { violations } = await page.evaluate<AxeResults>(
    of === 'all' ? 'axe.run()' : `axe.run({ runOnly: ['color-contrast', 'link-in-text-block'] })`,
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
};
