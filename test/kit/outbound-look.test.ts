import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { t } from 'tap';
import { createGuardedClient } from '../../src/kit/outbound/client.js';
import type { Target } from '../../src/kit/outbound/target.js';

/** Calls that only look: HEAD and GET, over http where that is allowed. */

const seen: string[] = [];
const server = createServer((request, response) => {
  seen.push(`${request.method} ${request.headers.host} ${request.headers.range ?? ''}`.trim());
  const status = request.url === '/moved' ? 302 : 200;
  response.writeHead(status, { location: 'https://elsewhere.acme.com/' }).end('a page');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
t.teardown(() => void server.close().closeAllConnections());
const { port } = server.address() as AddressInfo;

const open = (allow_cidrs: readonly string[], allow_plain = true) => {
  const resolve = async () => ['127.0.0.1'];
  const client = createGuardedClient({ allow_cidrs, allow_plain, resolve });
  t.teardown(() => client.close());
  return client;
};

t.test('a look over http sends no body and tells where a page has moved', async (t) => {
  const client = open(['127.0.0.0/8']);
  const page = client.parse(`http://pages.acme.com:${port}/moved`) as Target;
  const headers = { Range: 'bytes=0-0' };
  t.match(await client.look({ target: page, method: 'HEAD', headers: {} }), {
    ...{ status: 302, error: null, answer: '', location: 'https://elsewhere.acme.com/' },
  });
  t.match(await client.look({ target: page, method: 'GET', headers }), { answer: 'a page' });
  t.same(seen.splice(0), [`HEAD pages.acme.com:${port}`, `GET pages.acme.com:${port} bytes=0-0`]);
});

t.test('http has the same guard, and is refused where it was not allowed', async (t) => {
  const client = open([]);
  const page = client.parse(`http://pages.acme.com:${port}/`) as Target;
  t.match(await client.look({ target: page, method: 'HEAD', headers: {} }), {
    ...{ status: null, error: 'address_refused' },
  });
  t.same(seen, [], 'nothing was sent');
  t.match(client.parse('http://127.0.0.1/'), { kind: 'problem', code: 'target_refused' });
  t.match(client.parse('http://pages.acme.com:22/'), { code: 'target_refused' });
  t.match(client.parse('http://pages.acme.com/'), { port: 80, is_plain: true });
  t.match(client.parse('https://pages.acme.com/'), { port: 443, is_plain: false });
  t.match(client.parse('ftp://pages.acme.com/'), { code: 'invalid_url' });
  const strict = open([], false);
  t.match(strict.parse('http://pages.acme.com/'), { code: 'https_required' });
});
