import { WebSocket } from 'ws';

/** A client that opens one connection of each kind, reports it, and is then stopped by its test. */

const [, , url = '', key = ''] = process.argv;
const headers = { 'x-api-key': key, 'content-type': 'application/json' };

const openSocket = () =>
  new Promise<void>((resolve) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`, { headers });
    socket.once('message', () => resolve());
  });

const post = (path: string, body: object, more: Readonly<Record<string, string>> = {}) =>
  fetch(url + path, {
    method: 'POST',
    headers: { ...headers, ...more },
    body: JSON.stringify(body),
  });

const listen = () =>
  post(
    '/mcp',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'subscriptions/listen',
      params: {
        notifications: {
          resourceSubscriptions: ['forum://question/0190a000-0000-7000-8000-000000000001'],
        },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
  );

await Promise.all(Array.from({ length: 4 }, openSocket));
// These are kept in a variable, because fetch cancels a response that nothing refers to.
const open = [await fetch(`${url}/api/stream`, { headers }), await listen()];
if (open.some(({ status }) => status !== 200)) throw new Error('it was refused');
void fetch(`${url}/api/events?after=${process.argv[4]}&wait=50`, { headers });
void post('/api/me/consumers/mine/take', { member: 'gone', wait: 50 });
process.stdout.write(`${open.length}\n`);
setInterval(() => open.length, 60_000);
