import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import WebSocket from 'ws';
import type { Teardown } from './stores.js';
import { until } from './until.js';

/**
 * A headless Chromium, where the machine has one, over its debugging socket: pages are opened,
 * looked at with an expression, and what they ask of the network is written down.
 */

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
  /** Addresses that the page asked for, in order, those of its frames included. */
  readonly requests: readonly string[];
  /** Mistakes in the console: a breach of the policy, a script that threw. */
  readonly mistakes: readonly string[];
}

export interface Browser {
  open(url: string, size?: { width: number; height: number }): Promise<BrowserPage>;
}

type Params = Record<string, unknown>;

const startProcess = async (t: Teardown): Promise<string> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pf-browser-'));
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0'];
  const child: ChildProcess = spawn(chromium ?? '', [...flags, `--user-data-dir=${folder}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // A group of its own: its processes end together, and nothing writes into the folder then.
    detached: true,
  });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  t.teardown(async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    process.kill(-(child.pid ?? 0), 'SIGKILL');
    await gone;
    child.stderr?.destroy();
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
  return until('the browser', async () => /ws:\/\/\S+/.exec(said)?.[0]);
};

/** Calls and events of the debugging protocol. */
const openProtocol = async (t: Teardown, url: string) => {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve).once('error', reject);
  });
  t.teardown(() => socket.terminate());
  const waiting = new Map<number, (answer: Params) => void>();
  const listeners = new Map<string, (method: string, params: Params) => void>();
  let calls = 0;
  socket.on('message', (text) => {
    const message = JSON.parse(String(text));
    if (message.id === undefined)
      listeners.get(message.sessionId)?.(message.method, message.params);
    else waiting.get(message.id)?.(message);
  });
  const call = async (method: string, params: Params = {}, sessionId?: string): Promise<Params> => {
    calls += 1;
    const id = calls;
    const answer = await new Promise<Params>((resolve) => {
      waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params, sessionId }));
    });
    waiting.delete(id);
    if (answer['error'] !== undefined) throw new Error(JSON.stringify(answer['error']));
    return answer['result'] as Params;
  };
  return { call, listeners };
};

export const openBrowser = async (t: Teardown): Promise<Browser> => {
  const { call, listeners } = await openProtocol(t, await startProcess(t));

  const evaluate = async <T>(session: string, expression: string): Promise<T> => {
    const params = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await call('Runtime.evaluate', params, session);
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { value: T }).value;
  };

  return {
    async open(url, { width, height } = { width: 400, height: 700 }) {
      const requests: string[] = [];
      const mistakes: string[] = [];
      const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
      const attached = await call('Target.attachToTarget', { targetId, flatten: true });
      const session = String(attached['sessionId']);
      listeners.set(session, (method, params) => {
        if (method === 'Network.requestWillBeSent') {
          requests.push(String((params['request'] as Params)['url']));
        }
        if (method === 'Network.webSocketCreated') requests.push(String(params['url']));
        if (method === 'Runtime.exceptionThrown') mistakes.push(JSON.stringify(params));
        if (method === 'Log.entryAdded') mistakes.push(String((params['entry'] as Params)['text']));
      });
      for (const domain of ['Page', 'Network', 'Runtime', 'Log']) {
        await call(`${domain}.enable`, {}, session);
      }
      const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
      await call('Emulation.setDeviceMetricsOverride', metrics, session);
      await call('Page.navigate', { url }, session);
      await until('the page', () =>
        evaluate<boolean>(
          session,
          `location.href !== 'about:blank' && document.readyState === 'complete'`,
        ),
      );
      return { requests, mistakes, evaluate: (expression) => evaluate(session, expression) };
    },
  };
};
