import { execFileSync } from 'node:child_process';
import { type Browser, type BrowserContextOptions, chromium as driver } from 'playwright-core';
import type { Teardown } from './stores.js';

/** A headless Chromium, where the machine has one. */

const find = (): string | undefined => {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8' }).trim();
    } catch {
      // The next name.
    }
  }
  return undefined;
};

/** Where it is; tests that need it are left out without it. */
export const chromium = find();

export interface BrowserPage {
  /** The value of an expression in the page; a promise is waited for. */
  evaluate<T>(expression: string): Promise<T>;
  resize(width: number, height: number): Promise<void>;
  /** Addresses that the page asked for, in order, those of its frames included. */
  readonly requests: readonly string[];
  /** Mistakes in the console: a breach of the policy, a script that threw. */
  readonly mistakes: readonly string[];
}

const openPage = async (
  browser: Browser,
  url: string,
  viewport = { width: 400, height: 700 },
): Promise<BrowserPage> => {
  const page = await browser.newPage({ viewport });
  const requests: string[] = [];
  const mistakes: string[] = [];
  page.on('request', (request) => void requests.push(request.url()));
  page.on('websocket', (socket) => void requests.push(socket.url()));
  page.on('pageerror', (error) => void mistakes.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') mistakes.push(message.text());
  });
  await page.goto(url);
  return {
    ...{ requests, mistakes },
    evaluate: (expression) => page.evaluate(expression),
    resize: (width, height) => page.setViewportSize({ width, height }),
  };
};

export const openBrowser = async (t: Teardown) => {
  const browser = await driver.launch({
    ...(chromium === undefined ? {} : { executablePath: chromium }),
    chromiumSandbox: false,
  });
  t.teardown(() => browser.close());
  return {
    /** A window by itself, such as one without scripts; it ends with the browser. */
    context: (options: BrowserContextOptions) => browser.newContext(options),
    open: (url: string, viewport?: { width: number; height: number }) =>
      openPage(browser, url, viewport),
  };
};
