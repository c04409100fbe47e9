import { Ajv2020 } from 'ajv/dist/2020.js';
import { openModern } from '../features/mcp/world.js';
import { no_limits, startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import type { Any } from './world.js';

/**
 * Every client accepts the schemas of the MCP tools, and bad messages get JSON-RPC errors. Each
 * case was written from the documentation alone.
 */

const app = await startApp(t, { env: no_limits });
const agent = await makeAgent(app, { human: await makeHuman(app) });
const { connect, client } = await openModern(t, app.url, agent.key);
await connect();
const question_id = await makeOpenQuestion(app);
const { tools } = (await client.listTools()) as Any;

/** Every schema of a tool, at any depth. */
function* schemasIn(schema: Any): Generator<Any> {
  yield schema;
  const { properties = {}, items, anyOf = [], additionalProperties } = schema;
  for (const one of [...Object.values(properties), ...anyOf]) yield* schemasIn(one);
  if (items !== undefined) yield* schemasIn(items);
  if (typeof additionalProperties === 'object') yield* schemasIn(additionalProperties);
}

const schemas: readonly Any[] = tools.flatMap((one: Any) => [...schemasIn(one.inputSchema)]);
const kinds = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
const unwanted =
  '$ref $dynamicRef $id $anchor patternProperties pattern const oneOf allOf not if then else ' +
  'unevaluatedProperties dependentRequired dependentSchemas contains propertyNames contentEncoding';

const structure: Readonly<Record<string, (schema: Any) => boolean>> = {
  'each has a type, or branches that have one': ({ type, anyOf }) =>
    anyOf?.every((one: Any) => kinds.includes(one.type)) ?? kinds.includes(type),
  'no keyword that a provider refuses': (schema) =>
    !unwanted.split(' ').some((name) => Object.hasOwn(schema, name)),
  'no format but date-time': ({ format = 'date-time' }) => format === 'date-time',
  'a list says what it holds': ({ type, items }) =>
    type !== 'array' || (items?.type ?? items?.anyOf) !== undefined,
  'required names are different properties': ({ required = [], properties = {} }) =>
    new Set(required).size === required.length &&
    required.every((name: string) => Object.hasOwn(properties, name)),
  'an enum fits its type': ({ type, enum: values }) =>
    values === undefined ||
    (values.length > 0 &&
      new Set(values).size === values.length &&
      values.every((value: unknown) => typeof value === type)),
  'names are short and plain': ({ properties = {} }) =>
    Object.keys(properties).every((name) => /^[a-zA-Z0-9_-]{1,64}$/.test(name)),
  'a default is of its type': ({ type, default: value }) =>
    value === undefined ||
    (type === 'array' ? Array.isArray(value) : typeof value === type.replace('integer', 'number')),
  'a description is short': ({ description = '' }) => description.length <= 400,
};

t.test('schemas of tools are ones that every client takes', async (t) => {
  t.ok(schemas.length > 50);
  for (const [name, holds] of Object.entries(structure)) {
    t.same(
      schemas.filter((schema) => !holds(schema)),
      [],
      name,
    );
  }
  t.equal(new Set(tools.map(({ name }: Any) => name)).size, 11);
  for (const { name, description, inputSchema } of tools) {
    t.match({ name, description }, { name: /^[a-z_]{1,64}$/, description: /\w/ });
    t.match(inputSchema, { type: 'object', properties: {}, additionalProperties: false }, name);
    t.equal(inputSchema.anyOf, undefined, name);
  }
});

t.test('schemas compile, and real calls are valid', async (t) => {
  const ajv = new Ajv2020({ strict: true, strictTypes: 'log', formats: { 'date-time': true } });
  const reasoning = makeReasoning();
  const calls: Readonly<Record<string, Any>> = {
    find_questions: { status: 'open', limit: 5, fields: ['id'] },
    get_question: { question_id, full: true },
    predict: { question_id, prediction: true, confidence: 80, reasoning, dry_run: true },
    revise: { prediction_id: question_id, probability: 30, reason: 'x'.repeat(30) },
    comment: { question_id, content: 'Both surveys point the same way by now.' },
    vote: { prediction_id: question_id, direction: 'up' },
    my_record: {},
    search: { q: 'nvidea' },
    follow: { kind: 'question', id: question_id, act: 'unfollow' },
    inbox: { unread: true, limit: 5 },
    events: { after: 0, limit: 10, topic: [`question:${question_id}`] },
  };
  for (const { name, inputSchema } of tools) {
    const validate = ajv.compile(inputSchema);
    t.ok(validate(calls[name]), `${name}: ${JSON.stringify(validate.errors)}`);
    t.notOk(validate({ ...calls[name], colour: 'red' }), `${name} takes nothing else`);
  }
});

const listOf = async (headers: Record<string, string>): Promise<string> => {
  const { body } = await post(request('tools/list'), headers);
  return JSON.stringify(body.result.tools);
};

t.test('the list is the same for all, and small', async (t) => {
  const mine = { authorization: `Bearer ${agent.key}` };
  const lists = [await listOf({}), await listOf(mine), await listOf(mine)];
  t.equal(new Set(lists).size, 1);
  t.ok(Buffer.byteLength(lists[0] as string) <= 20_480);
});

const post = async (body: string | Buffer, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${app.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: new Uint8Array(Buffer.from(body)),
  });
  const text = await answer.text();
  t.notMatch(text, /<html/i);
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
  return { status: answer.status, body: data === '' ? null : (JSON.parse(data) as Any) };
};

const request = (method: unknown, params?: unknown, id: unknown = 7): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

const ping = request('ping');
const [parse_error, invalid_request, unknown_method, bad_params] = [
  -32_700, -32_600, -32_601, -32_602,
];

const find = (args: unknown) => request('tools/call', { name: 'find_questions', arguments: args });
const callOf = (name: unknown) => request('tools/call', { name, arguments: {} });
const utf16 = Buffer.from(ping, 'utf16le');

const refused: readonly (readonly [string | Buffer, number, unknown])[] = [
  ['{"jsonrpc":"2.0","id":1,', parse_error, null],
  ['not json', parse_error, null],
  ["{'jsonrpc':'2.0'}", parse_error, null],
  ['{"a":1}}', parse_error, null],
  ['', parse_error, null],
  ['   \n', parse_error, null],
  [utf16, parse_error, null],
  [Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', 'latin1'), parse_error, null],
  [`${ping}${ping}`, parse_error, null],
  [find({ limit: 1 }).replace('1', '1e999'), parse_error, null],
  [find('x').replace('"x"', '"\\ud800"'), parse_error, null],
  [`{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(10_000)}`, parse_error, null],
  ['1', invalid_request, null],
  ['"x"', invalid_request, null],
  ['null', invalid_request, null],
  ['true', invalid_request, null],
  ['[]', invalid_request, null],
  ['{}', invalid_request, null],
  ['{"id":1}', invalid_request, 1],
  ['{"jsonrpc":"2.0","id":1}', invalid_request, 1],
  ['{"jsonrpc":"2.0","id":1,"method":7}', invalid_request, 1],
  ['{"jsonrpc":"2.0","id":1,"method":null}', invalid_request, 1],
  ['{"jsonrpc":"1.0","id":2,"method":"ping"}', invalid_request, 2],
  ['{"id":2,"method":"ping"}', invalid_request, 2],
  ['{"jsonrpc":2.0,"id":2,"method":"ping"}', invalid_request, 2],
  [`[${ping},${ping}]`, invalid_request, null],
  [request('ping', {}, {}), invalid_request, null],
  [request('ping', {}, [1]), invalid_request, null],
  [request('ping', {}, true), invalid_request, null],
  ...['tools/cal', '', 'rpc.discover', '__proto__', 'toString', 'constructor'].map(
    (method) => [request(method, {}, 'abc'), unknown_method, 'abc'] as const,
  ),
  ...['abc', 0, -5, '', '0', Number.MAX_SAFE_INTEGER, 'ä'].map(
    (id) => [request('nothing', {}, id), unknown_method, id] as const,
  ),
  [request('tools/call'), bad_params, 7],
  [request('tools/call', {}), bad_params, 7],
  [callOf(7), bad_params, 7],
  [find([]), bad_params, 7],
  [find('limit=1'), bad_params, 7],
  [find(5), bad_params, 7],
  ...['predicts', '', 'hasOwnProperty'].map((name) => [callOf(name), bad_params, 7] as const),
  [request('resources/read', { uri: 7 }), bad_params, 7],
  [request('resources/read', {}), bad_params, 7],
  [request('initialize', {}), bad_params, 7],
  [request('initialize', { protocolVersion: 7 }), bad_params, 7],
];

t.test('a bad message gets the error of JSON-RPC for it, with its id', async (t) => {
  for (const [body, code, id] of refused) {
    const answer = await post(body);
    const label = body.toString('utf8').slice(0, 60);
    t.match(answer.body, { jsonrpc: '2.0', error: { code, message: /\w/ } }, label);
    t.equal(answer.body.id, id, label);
    t.ok(answer.status < 500, label);
  }
});

t.test('addresses that are no question are refused, and no file is read', async (t) => {
  for (const uri of ['forum://question/nope', 'file:///etc/passwd', '']) {
    const { body } = await post(request('resources/read', { uri }));
    t.ok([-32_602, -32_002].includes(body.error.code), uri);
    t.equal(body.id, 7);
  }
});

t.test('messages that are no requests get no result', async (t) => {
  for (const body of [
    '{"jsonrpc":"2.0","method":"notifications/nonsense"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}',
    '{"jsonrpc":"2.0","id":77,"result":{}}',
    '{"jsonrpc":"2.0","id":78,"error":{"code":-1,"message":"x"}}',
  ]) {
    const answer = await post(body);
    t.ok(answer.status >= 200 && answer.status < 500, `${answer.status} ${body}`);
    t.equal(answer.body?.result, undefined, body);
  }
});

t.test('refusals of a tool are results, and those of HTTP are JSON', async (t) => {
  const call = async (name: string, args: unknown) =>
    (await post(request('tools/call', { name, arguments: args }), { 'x-api-key': agent.key })).body;
  for (const [name, args] of [
    ['predict', {}],
    ['get_question', { question_id: 'nope' }],
    ['get_question', { question_id: agent.id }],
  ] as const) {
    const body = await call(name, args);
    t.match(body, { id: 7, result: { isError: true } }, name);
    t.equal(body.error, undefined);
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
    t.equal((await post(ping, { 'content-type': type })).status, 415, type);
  }
  const large = await post(find({ q: 'x'.repeat(70 * 1_024) }));
  t.match(large, { status: 413, body: { error: { data: { code: 'BODY_TOO_LARGE' } } } });
  const unknown = await post(ping, { authorization: 'Bearer sk_wrong' });
  t.match(unknown, { status: 401, body: { jsonrpc: '2.0' } });
  for (const method of ['GET', 'DELETE', 'PUT']) {
    const answer = await fetch(`${app.url}/mcp`, { method, headers: { accept: '*/*' } });
    t.equal(answer.status, 405, method);
    t.match(answer.headers.get('allow'), /POST/);
    t.match(answer.headers.get('content-type'), /json/);
  }
});

t.test('versions that are not known', async (t) => {
  const info = { name: 'x', version: '1' };
  const hello = { protocolVersion: '1999-01-01', capabilities: {}, clientInfo: info };
  const { body } = await post(request('initialize', hello));
  t.match(body.result?.protocolVersion ?? body.error?.code, /^20\d\d-|-32602/);
  const later = await post(ping, { 'mcp-protocol-version': '1999-01-01' });
  t.ok(later.status < 500);
});
