import { readFileSync } from 'node:fs';
import vm from 'node:vm';
import { WebSocket } from 'ws';

/**
 * A separate program (`--experimental-vm-modules`). It runs the module text in its first argument
 * as a page would, with browser features only and nothing from Node. Inside it, `given` is the JSON
 * of the second argument. Relative imports are resolved against the URL in the third argument.
 */

/** Accepts no headers and cannot be terminated, as in a browser. */
class PageSocket extends WebSocket {
  constructor(url: string, ...more: unknown[]) {
    if (more.length > 0) throw new Error('the websocket of a browser takes only an address');
    super(url);
  }
}
Object.defineProperty(PageSocket.prototype, 'terminate', { value: undefined });

const [, , text = '', given = '{}', address = ''] = process.argv;
const web = ['URL', 'URLSearchParams', 'fetch', 'AbortController', 'AbortSignal', 'TextEncoder'];
const more = ['crypto', 'performance', 'setTimeout', 'clearTimeout', 'console'];
const globals = globalThis as unknown as Readonly<Record<string, unknown>>;
const context = vm.createContext({
  ...Object.fromEntries([...web, ...more].map((name) => [name, globals[name]])),
  WebSocket: PageSocket,
  given: JSON.parse(given),
});

const known = new Map<string, vm.SourceTextModule>();
const load = (url: URL): vm.SourceTextModule => {
  const found = known.get(url.href);
  if (found !== undefined) return found;
  const source = readFileSync(url, 'utf8');
  const made = new vm.SourceTextModule(source, { context, identifier: url.href });
  known.set(url.href, made);
  return made;
};

const main = new vm.SourceTextModule(text, { context, identifier: address });
await main.link((name, from) => {
  if (!/^\.\.?\//.test(name)) throw new Error(`a browser cannot find ${name}`);
  return load(new URL(name, from.identifier));
});
await main.evaluate();
