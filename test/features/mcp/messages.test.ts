import { startApp } from '../../help/app.js';
import { t } from '../../help/tap.js';

/** A bad message gets a JSON-RPC error, whichever part of the service rejects it. */

const app = await startApp(t);

// biome-ignore lint/suspicious/noExplicitAny: an answer is read by tests that know its shape.
type Any = any;

const post = async (
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) => {
  const answer = await fetch(`${app.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const text = await answer.text();
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
  return { status: answer.status, body: JSON.parse(data) as Any };
};

const request = (method: string, params?: unknown, id: unknown = 7) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

t.test('a body that cannot be read is a parse error', async (t) => {
  const utf8 = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
  const bad = ['{', '', 'nonsense', '{"a":1e999}', utf8, '{"a":"\\u0000"}', '"\\ud800"'];
  for (const body of bad) {
    const error = { code: -32700, message: /\.$/, data: { code: 'INVALID_JSON', status: 400 } };
    t.match(await post(body), { status: 400, body: { jsonrpc: '2.0', id: null, error } });
  }
  const refused = await post('{');
  t.match(refused.body.error.data.request_id, /./);
  t.same(Object.keys(refused.body).sort(), ['error', 'id', 'jsonrpc']);
});

t.test('JSON that is no request is an invalid request', async (t) => {
  const cases: readonly (readonly [string, string | number | null])[] = [
    ['[]', null],
    ['5', null],
    ['null', null],
    ['"text"', null],
    ['{}', null],
    [`[${request('tools/list')}]`, null],
    ['{"jsonrpc":"2.0","id":3}', 3],
    ['{"jsonrpc":"2.0","id":"three","method":5}', 'three'],
    ['{"jsonrpc":"1.0","id":3,"method":"tools/list"}', 3],
    [request('tools/list', [1]), 7],
    [request('tools/list', 'text'), 7],
    [request('tools/list', {}, { a: 1 }), null],
  ];
  for (const [body, id] of cases) {
    const error = { code: -32600, message: /JSON-RPC 2\.0/ };
    t.match(await post(body), { status: 400, body: { jsonrpc: '2.0', id, error } }, body);
  }
});

t.test('an unknown method, and parameters that are missing, have their own codes', async (t) => {
  t.match((await post(request('nothing'))).body, { id: 7, error: { code: -32601 } });
  for (const [method, params, message] of [
    ['tools/call', undefined, /params\.name/],
    ['tools/call', { name: 5 }, /params\.name/],
    ['tools/call', { name: 'find_questions', arguments: [1] }, /params\.arguments/],
    ['tools/call', { name: 'find_questions', arguments: '{' }, /params\.arguments/],
    ['tools/call', { name: 'find_questions', arguments: 5 }, /params\.arguments/],
    ['tools/call', { name: 'nothing' }, /There is no tool nothing/],
    ['resources/read', {}, /params\.uri/],
    ['initialize', undefined, /params\.protocolVersion/],
  ] as const) {
    const { status, body } = await post(request(method, params));
    t.equal(status, 200, method);
    t.match(body, { jsonrpc: '2.0', id: 7, error: { code: -32602, message } }, method);
  }
});

t.test('refusals of the HTTP layer keep their status', async (t) => {
  const list = request('tools/list');
  const cases = [
    [list, { 'content-type': 'text/plain' }, 415, -32600, 'UNSUPPORTED_MEDIA_TYPE'],
    [`"${'x'.repeat(65_536)}"`, {}, 413, -32600, 'BODY_TOO_LARGE'],
    [list, { 'x-filler': 'x'.repeat(9_000) }, 431, -32000, 'HEADERS_TOO_LARGE'],
    [list, { authorization: 'Bearer sk_nonsense' }, 401, -32000, 'INVALID_API_KEY'],
  ] as const;
  for (const [body, headers, status, code, name] of cases) {
    const refused = await post(body, headers as Record<string, string>);
    t.equal(refused.status, status, name);
    t.match(refused.body, { jsonrpc: '2.0', id: null, error: { code, data: { code: name } } });
  }
  const unacceptable = await post(list, { accept: 'text/html' });
  t.match(unacceptable, { status: 406, body: { jsonrpc: '2.0', error: { code: -32000 } } });
  t.match(await post('{', { accept: 'text/html' }), { status: 400, body: { id: null } });
});

t.test('the document describes these refusals', async (t) => {
  const { body } = await app.call('GET', '/openapi.json');
  const { responses } = body.paths['/mcp'].post;
  for (const status of ['400', '413', '415', '429']) {
    const { schema } = responses[status].content['application/json'];
    t.same(Object.keys(schema.properties), ['jsonrpc', 'id', 'error'], status);
  }
});
