import { gzipSync } from 'node:zlib';
import { whileRebuilding } from '../features/leaderboards/world.js';
import { type Answered, no_limits, startApp } from '../help/app.js';
import { openParts } from '../help/parts.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';
import { type Any, importQuestion } from './world.js';

/**
 * Times with an offset in a URL, bodies with a byte order mark or in gzip, and keys sent in another
 * header. Each case was written from the documentation alone.
 */

const app = await startApp(t, { roles: ['api', 'relay'], env: no_limits });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const get = (path: string, options: Any = {}) => app.call('GET', path, options);
const asAdmin = (method: string, path: string, body?: unknown) =>
  app.call(method, path, { admin: true, ...(body === undefined ? {} : { body }) });

/* Times with an offset. */

const source = await importQuestion(app, { opens_at: '2026-02-01T00:00:00Z' });
await asAdmin('POST', '/api/admin/agents/import', {
  items: ['Early', 'Late'].map((name) => ({ name, model: 'm' })),
});
for (const [name, forecast_at] of [
  ['Early', '2026-02-28T22:30:00Z'],
  ['Late', '2026-02-28T23:30:00Z'],
] as const) {
  const item = { source: source.source, source_id: source.source_id, agent: name };
  const stated = { ...item, prediction: true, confidence: 70, forecast_at };
  const { body } = await asAdmin('POST', '/api/admin/predictions/import', { items: [stated] });
  if (body.results[0].status !== 'created') throw new Error(JSON.stringify(body));
}

/** The number of forecasts in a file. */
const countExported = async (query: string): Promise<number> => {
  const { status, body } = await get(`/api/export/predictions?format=ndjson&${query}`);
  if (status !== 200) throw new Error(`${query}: ${JSON.stringify(body)}`);
  return String(body).split('\n').filter(Boolean).length;
};

// Exports include rows a few seconds after they are stored.
await until('both forecasts are exported', async () => (await countExported('')) === 2);
await until('the log has them', async () => {
  const [row] = await app.sql<{ left: number }[]>`select count(*)::integer as left from outbox`;
  return row?.left === 0;
});

const moments: readonly (readonly [query: string, rows: number])[] = [
  ['as_of=2026-02-28T23:00:00Z', 1],
  ['as_of=2026-03-01T01:00:00+02:00', 1],
  ['as_of=2026-03-01T01:00:00%2B02:00', 1],
  ['as_of=2026-02-28T22:00:00Z', 0],
  ['as_of=2026-03-01T00:00:00+02:00', 0],
  ['as_of=2026-03-01T00:00:00%2B02:00', 0],
  ['as_of=2026-02-28T22:15:00+00:00', 0],
  ['as_of=2026-02-28T17:45:00-05:00', 1],
  ['as_of=2026-03-01T01:00:00.5+02:00', 1],
  ['as_of=2026-03-01t01:00:00+02:00', 1],
  ['as_of=2026-03-01T01:00+02:00', 1],
  ['as_of=2026-03-01T00:00:00+0200', 0],
  ['as_of=2026-03-01T00:00:00%2002:00', 0],
  ['since=2026-03-01T00:00:00+02:00&until=2026-03-01T01:00:00+02:00', 1],
];
for (const [query, count] of moments) {
  t.test(`a file with ${query} has ${count} forecasts`, async (t) => {
    t.equal(await countExported(query), count);
  });
}

/** Paths that accept the same moment in UTC, with a raw plus, and with an encoded plus. */
const same_moments: readonly (readonly [name: string, path: (time: string) => string])[] = [
  ['the consensus as it stood', (time) => `/api/consensus?ids=${source.id}&at=${time}`],
  ['the snapshot of an export', (time) => `/api/export/predictions?as_of=${time}`],
  ['questions that close before', (time) => `/api/questions?status=all&closes_before=${time}`],
  ['questions that close after', (time) => `/api/questions?status=all&closes_after=${time}`],
  ['questions made after', (time) => `/api/questions?status=all&created_after=${time}`],
  ['the audit log since', (time) => `/api/admin/audit?since=${time}`],
  ['the audit log until', (time) => `/api/admin/audit?until=${time}`],
];
for (const [name, path] of same_moments) {
  t.test(`a raw plus says the same as an encoded one: ${name}`, async (t) => {
    const times = [
      '2026-02-28T23:00:00Z',
      '2026-03-01T04:30:00+05:30',
      '2026-03-01T04:30:00%2B05:30',
    ];
    const answers: Answered[] = [];
    for (const time of times) answers.push(await get(path(time), { admin: true }));
    const [utc, ...others] = answers.map(({ body }) => body.consensus ?? body);
    for (const { status } of answers) t.equal(status, 200);
    for (const other of others) t.same(other, utc);
  });
}

t.test('the manifest of an export names the same moment', async (t) => {
  const path = '/api/export/predictions/manifest?as_of=2026-03-01T01:00:00';
  const [raw, encoded] = [await get(`${path}+02:00`), await get(`${path}%2B02:00`)];
  const { rows, sha256, as_of } = raw.body;
  t.match({ rows, as_of }, { rows: 1, as_of: '2026-02-28T23:00:00.000Z' });
  t.match(encoded.body, { rows, sha256, as_of });
});

for (const time of [
  '+',
  '2026-03-01T00:00:00++02:00',
  '2026-03-01T00:00:00+99:00',
  '2026-03-01+02:00',
]) {
  t.test(`half a time is refused: ${time}`, async (t) => {
    const { status, body } = await get(`/api/export/predictions?as_of=${time}`);
    t.match({ status, body }, { status: 400, body: { code: 'INVALID_REQUEST' } });
    t.equal(body.fields[0].path, 'query.as_of');
  });
}

t.test('elsewhere a plus is a blank', async (t) => {
  const meeting = await makeOpenQuestion(app, { question: 'Will alpha meet beta in 2035?' });
  await makeOpenQuestion(app, { question: 'Will gamma win in 2035?' });
  for (const name of ['Ada Love', 'Ada+Love']) await makeAgent(app, { human, name });
  const find = async (path: string, plural: string): Promise<readonly string[]> => {
    const { status, body } = await get(path);
    t.equal(status, 200, path);
    return body[plural].map((one: Any) => one.name ?? one.id);
  };
  const since = 'created_after=2026-01-01T00:00:00+02:00';
  for (const q of ['alpha+beta', 'alpha%20beta', `alpha+beta&${since}`]) {
    t.same(await find(`/api/questions?q=${q}`, 'questions'), [meeting], q);
  }
  await find('/api/questions?q=alpha%2Bbeta', 'questions');
  const { deps } = await openParts(t, { stores: app.stores });
  await whileRebuilding(deps, () =>
    until('the directory has them', async () => (await get('/api/agents?q=ada')).body.total === 2),
  );
  t.same(await find('/api/agents?q=Ada+Love', 'agents'), ['Ada Love']);
  t.same(await find('/api/agents?q=Ada%2BLove', 'agents'), ['Ada+Love']);
});

t.test('a tag cannot have a plus, and an encoded one is looked for as it is', async (t) => {
  const tags = { subcategory: 'research_academia', tags: ['#C++'] };
  t.equal((await asAdmin('POST', '/api/admin/taxonomy/tags', tags)).status, 400);
  for (const tag of ['C%2B%2B', '%23C%2B%2B', '%23C++']) {
    const { status, body } = await get(`/api/questions?tag=${tag}`);
    t.match({ status, path: body.fields[0].path }, { status: 400, path: 'query.tag' });
  }
});

t.test('the next page keeps the plus', async (t) => {
  const make = (n: number) => makeOpenQuestion(app, { question: `Will delta meet omega in ${n}?` });
  const made = await Promise.all(Array.from({ length: 25 }, (_, n) => make(2040 + n)));
  const query = 'q=delta+omega&created_after=2026-01-01T00:00:00+02:00&limit=20';
  const first = await get(`/api/questions?${query}`);
  const [, next = ''] = /<([^>]*)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? [];
  const second = await get(next);
  const ids = [first, second].flatMap(({ body }) => body.questions.map(({ id }: Any) => id));
  t.equal(second.body.questions?.length, 5);
  t.same(ids.sort(), made.sort());
});

t.test('a body says its time literally', async (t) => {
  const ask = (at: string) =>
    app.call('POST', '/api/consensus/query', { body: { ids: [source.id], at } });
  t.equal((await ask('2026-03-01T00:00:00+02:00')).status, 200);
  for (const at of ['2026-03-01T00:00:00%2B02:00', '2026-03-01T00:00:00 02:00']) {
    const { status, body } = await ask(at);
    t.match({ status, path: body.fields[0].path }, { status: 400, path: 'body.at' });
  }
});

t.test('a call over the websocket reads the plus alike', async (t) => {
  const calls = await openCalls(t, app.port);
  const query = `ids=${source.id}&at=2026-03-01T01:00:00+02:00`;
  const { status, body } = await calls.call('GET', `/api/consensus?${query}`);
  t.equal(status, 200);
  t.equal(body.consensus[0].total_predictions, 1);
});

/* Bodies with a byte order mark, or in another encoding. */

const mark = Buffer.from([0xef, 0xbb, 0xbf]);
const marked = (text: unknown): Buffer =>
  Buffer.concat([mark, Buffer.from(typeof text === 'string' ? text : JSON.stringify(text))]);
let named = 0;
const newcomer = () => {
  named += 1;
  return { name: `Newcomer ${named}`, model: 'm' };
};
type Headers_ = Readonly<Record<string, string>>;
/** Sends the bytes unchanged. */
const sendBytes = async (
  method: string,
  path: string,
  { bytes, headers = {} }: { readonly bytes: Buffer; readonly headers?: Headers_ },
): Promise<{ readonly status: number; readonly body: Any; readonly headers: Headers }> => {
  const answer = await fetch(app.url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: new Uint8Array(bytes),
  });
  const text = await answer.text();
  const is_json = answer.headers.get('content-type')?.startsWith('application/json');
  return {
    status: answer.status,
    body: is_json === true ? JSON.parse(text) : text,
    headers: answer.headers,
  };
};
const register = (bytes: Buffer, headers: Headers_ = {}) =>
  sendBytes('POST', '/api/register', { bytes, headers });
const countAgents = async (): Promise<number> => {
  const [row] = await app.sql<{ count: number }[]>`select count(*)::integer as count from agents`;
  return row?.count ?? 0;
};

const json = (): Buffer => Buffer.from(JSON.stringify(newcomer()));
const swapped = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
const registrations: readonly (readonly [
  name: string,
  make: () => Buffer,
  headers: Headers_,
  status: number,
  code?: string,
])[] = [
  ['a mark first', () => marked(newcomer()), {}, 201],
  [
    'a mark, blanks and a charset',
    () => marked(`\r\n  ${JSON.stringify(newcomer())}\r\n`),
    { 'content-type': 'application/json; charset=utf-8' },
    201,
  ],
  ['a mark alone', () => mark, {}, 400, 'INVALID_JSON'],
  ['two marks', () => Buffer.concat([mark, marked(newcomer())]), {}, 400, 'INVALID_JSON'],
  ['a mark at the end', () => Buffer.concat([json(), mark]), {}, 400, 'INVALID_JSON'],
  [
    'UTF-16, little end first',
    () => Buffer.from(`\ufeff${json()}`, 'utf16le'),
    {},
    400,
    'INVALID_JSON',
  ],
  ['UTF-16, big end first', () => swapped(`\ufeff${json()}`), {}, 400, 'INVALID_JSON'],
  ['identity', json, { 'content-encoding': 'identity' }, 201],
  ['Identity', json, { 'content-encoding': 'Identity' }, 201],
  ['gzip that does not say so', () => gzipSync(json()), {}, 400, 'INVALID_JSON'],
  ['plain, as gzip', json, { 'content-encoding': 'gzip' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ...['gzip', 'br', 'deflate', 'zstd', 'x-gzip', 'GZIP', 'gzip, br', 'identity, gzip'].map(
    (encoding) =>
      [
        encoding,
        () => gzipSync(json()),
        { 'content-encoding': encoding },
        415,
        'UNSUPPORTED_MEDIA_TYPE',
      ] as const,
  ),
];
for (const [name, make, headers, status, code] of registrations) {
  t.test(`a registration is answered ${status}: ${name}`, async (t) => {
    const before = await countAgents();
    const answer = await register(make(), headers);
    t.equal(answer.status, status, JSON.stringify(answer.body));
    t.equal(answer.body.code, code);
    t.equal(await countAgents(), before + (status === 201 ? 1 : 0));
    if (status !== 415) return;
    t.equal(answer.headers.get('accept-encoding'), 'identity');
    t.match(answer.body.error, /uncompressed/);
  });
}

t.test('every door that takes JSON reads a body with a mark', async (t) => {
  const [one, other] = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
  const stated = () => ({ prediction: true, confidence: 60, reasoning: makeReasoning() });
  const draft = {
    question: 'Will a marked question be published in 2035?',
    category: 'society',
    subcategory: 'benefits_public_good',
    closes_at: '2035-01-01T00:00:00Z',
  };
  const tools = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const key = { 'x-api-key': agent.key };
  const admin = { 'x-admin-key': app.admin_key };
  const mcp = { accept: 'application/json, text/event-stream' };
  const login = { email: human.email, password: 'correct horse battery' };
  const batch = { predictions: [{ question_id: other, ...stated() }] };
  const ways: readonly (readonly [string, string, unknown, Headers_, number])[] = [
    ['POST', '/api/auth/login', login, {}, 200],
    ['POST', `/api/questions/${one}/predict`, stated(), key, 201],
    ['POST', '/api/predictions/batch', batch, key, 200],
    ['PATCH', '/api/me', { bio: 'x' }, key, 200],
    ['POST', '/api/questions/query', {}, {}, 200],
    ['POST', '/api/admin/questions', draft, admin, 201],
    ['POST', '/mcp', tools, mcp, 200],
  ];
  for (const [method, path, body, headers, status] of ways) {
    const answer = await sendBytes(method, path, { bytes: marked(body), headers });
    t.equal(answer.status, status, `${path} ${JSON.stringify(answer.body).slice(0, 300)}`);
  }
});

t.test('a frame of the websocket may begin with a mark', async (t) => {
  const calls = await openCalls(t, app.port);
  const frame = { op: 'call', id: 'm', route: 'GET /api/taxonomy' };
  t.match(await calls.ask(`\ufeff${JSON.stringify(frame)}`, 'm'), { op: 'reply', status: 200 });
});

t.test('a mark inside a text is judged as a text', async (t) => {
  const id = await makeOpenQuestion(app);
  const content = 'A comment with\ufeffa mark inside, long enough to pass the gate for comments.';
  const path = `/api/questions/${id}/comments`;
  const { status, body } = await app.call('POST', path, { key: agent.key, body: { content } });
  t.equal(status, 201);
  t.match(body.comment.content, /^A comment with\ufeff?a mark inside/);
});

t.test('with an Idempotency-Key a mark makes another body', async (t) => {
  const body = newcomer();
  const headers = { 'idempotency-key': 'marked-1' };
  const plain = () => register(Buffer.from(JSON.stringify(body)), headers);
  const first = await plain();
  t.equal(first.status, 201);
  const other = await register(marked(body), headers);
  t.match(other, { status: 422, body: { code: 'IDEMPOTENCY_MISMATCH' } });
  t.match(await plain(), { status: 201, body: { user: { id: first.body.user.id } } });
});

t.test('the limit of 64 KiB counts the mark', async (t) => {
  const headers = { 'x-api-key': agent.key };
  const pad = (bytes: number): Buffer =>
    marked({ pad: 'x'.repeat(bytes - 3 - '{"pad":""}'.length) });
  const most = await sendBytes('PATCH', '/api/me', { bytes: pad(65_536), headers });
  const more = await sendBytes('PATCH', '/api/me', { bytes: pad(65_537), headers });
  t.equal(most.status, 200);
  t.match(more, { status: 413, body: { code: 'BODY_TOO_LARGE' } });
});

t.test('a bomb is not unpacked', async (t) => {
  const bytes = gzipSync(Buffer.alloc(60_000_000));
  t.ok(bytes.length < 65_536);
  const before = process.memoryUsage().rss;
  const send = () => register(bytes, { 'content-encoding': 'gzip' });
  const answers = await Promise.all(Array.from({ length: 20 }, send));
  for (const { status } of answers) t.equal(status, 415);
  t.ok(process.memoryUsage().rss - before < 60_000_000);
});

t.test('without a body the encoding does not matter', async (t) => {
  const id = await makeOpenQuestion(app);
  const headers = { 'content-encoding': 'gzip' };
  t.equal((await get(`/api/questions/${id}`, { headers })).status, 200);
  const path = `/api/me/follows/question/${id}`;
  const dropped = await app.call('DELETE', path, { headers, key: agent.key });
  t.ok(dropped.status < 500, `${dropped.status}`);
});

t.test('a form in gzip is refused as a page', async (t) => {
  const form = new URLSearchParams({ email: human.email, password: 'correct horse battery' });
  const { status, body, headers } = await sendBytes('POST', '/account/login', {
    bytes: gzipSync(form.toString()),
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'content-encoding': 'gzip',
      accept: 'text/html',
    },
  });
  t.equal(status, 415);
  t.match(body, /<h1>/);
  t.equal(headers.get('set-cookie'), null);
});

t.test('what is sent may be gzip all the same', async (t) => {
  const headers = { 'accept-encoding': 'gzip' };
  const file = await get('/api/export/predictions', { headers });
  t.match(
    { status: file.status, coding: file.headers.get('content-encoding') },
    { status: 200, coding: 'gzip' },
  );
  const found = await app.call('POST', '/api/questions/query', { headers, body: {} });
  t.equal(found.status, 200);
});

t.test('a forecast in gzip is not stored, with whatever key', async (t) => {
  const id = await makeOpenQuestion(app);
  const stated = { prediction: true, confidence: 60, reasoning: makeReasoning() };
  const bytes = gzipSync(JSON.stringify(stated));
  for (const key of [{}, { 'x-api-key': 'sk_wrong' }, { 'x-api-key': agent.key }]) {
    const headers = { 'content-encoding': 'gzip', ...key };
    const sent = await sendBytes('POST', `/api/questions/${id}/predict`, { bytes, headers });
    t.ok([401, 415].includes(sent.status), `${sent.status}`);
  }
  t.equal((await get(`/api/questions/${id}/predictions`)).body.total, 0);
});

/* Keys in other headers. */

const { key } = agent;
const { token } = human;
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const to_key = /X-API-Key/;
const to_bearer = /Authorization: Bearer/;
const wrong_headers: readonly (readonly [name: string, headers: Headers_, says: RegExp])[] = [
  ['Token and a key', { authorization: `Token ${key}` }, to_key],
  ['Key and a key', { authorization: `Key ${key}` }, to_key],
  ['ApiKey and a key', { authorization: `ApiKey ${key}` }, to_key],
  ['Api-Key and a key', { authorization: `Api-Key ${key}` }, to_key],
  ['apikey and a key', { authorization: `apikey ${key}` }, to_key],
  ['Basic with a key as the user', { authorization: `Basic ${base64(`${key}:`)}` }, to_key],
  [
    'Basic with a key as the password',
    { authorization: `Basic ${base64(`agent:${key}`)}` },
    to_key,
  ],
  ['basic in small letters', { authorization: `basic ${base64(`${key}:`)}` }, to_key],
  ['Bearer and a key', { authorization: `Bearer ${key}` }, to_key],
  ['Bearer and a key in quotes', { authorization: `Bearer "${key}"` }, to_key],
  ['a bare key', { authorization: key }, to_key],
  ['Bearer before the key', { 'x-api-key': `Bearer ${key}` }, /alone.*X-API-Key/],
  ['double quotes', { 'x-api-key': `"${key}"` }, /quotes/],
  ['single quotes', { 'x-api-key': `'${key}'` }, /quotes/],
  ['a blank inside', { 'x-api-key': `${key.slice(0, 20)} ${key.slice(20)}` }, /./],
  ['a session token as a key', { 'x-api-key': token }, to_bearer],
  ['Token and a session token', { authorization: `Token ${token}` }, to_bearer],
  ['a bare session token', { authorization: token }, to_bearer],
  ['Api-Key as the header', { 'api-key': key }, to_key],
  ['X-API-Token as the header', { 'x-api-token': key }, to_key],
  ['a list of keys', { 'x-api-key': `${key}, sk_${'x'.repeat(40)}` }, /./],
];
for (const [name, headers, says] of wrong_headers) {
  t.test(`the refusal says where the credential belongs: ${name}`, async (t) => {
    const path = /session/.test(name) ? '/api/auth/session' : '/api/me';
    const { status, body } = await get(path, { headers });
    t.equal(status, 401);
    t.match(body.error, says);
    t.notOk(JSON.stringify(body).includes(key.slice(3)));
    t.notOk(JSON.stringify(body).includes(token.slice(3)));
  });
}

t.test('over MCP a key as Bearer token is right', async (t) => {
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'my_record', arguments: {} },
  };
  const headers = { authorization: `Bearer ${key}`, accept: 'application/json, text/event-stream' };
  const bytes = Buffer.from(JSON.stringify(body));
  const answer = await sendBytes('POST', '/mcp', { bytes, headers });
  t.equal(answer.status, 200);
  t.match(JSON.stringify(answer.body), agent.name);
});

t.test('blanks around a key do no harm, and the case of the header does not count', async (t) => {
  const raw = openRaw(app.port);
  for (const line of [`X-API-Key:   ${key}  `, `X-API-Key:\t${key}\t`, `x-Api-KEY: ${key}`]) {
    raw.write(writeRequest('GET /api/me HTTP/1.1', [line]));
    t.equal((await raw.next())?.status, 200, line.replace(key, 'KEY'));
  }
  raw.write(writeRequest('GET /api/me HTTP/1.1', [`X-API-Key: ${key}`, 'X-API-Key: sk_other']));
  const twice = await raw.next();
  t.ok([400, 401].includes(twice?.status ?? 0), `two keys: ${twice?.status}`);
  raw.reset();
});

t.test('the case of Bearer does not count', async (t) => {
  for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
    const headers = { authorization: `${scheme} ${token}` };
    t.equal((await get('/api/auth/session', { headers })).status, 200, scheme);
  }
});

t.test('a key in the address is refused by name', async (t) => {
  for (const name of ['api_key', 'token', 'key']) {
    const { status, body } = await get(`/api/me?${name}=${key}`);
    t.match({ status, body }, { status: 400, body: { code: 'KEY_IN_QUERY', error: to_key } });
  }
});

t.test('a public read with a wrong scheme is refused or anonymous', async (t) => {
  const told = await get('/api/questions', { headers: { authorization: `Token ${key}` } });
  t.match(told, { status: 401, body: { error: to_key } });
  const authorization = `Basic ${base64('user:pass')}`;
  const { status } = await get('/api/questions', { headers: { authorization } });
  t.ok([200, 401].includes(status), `${status}`);
});

t.test('a wrong scheme does not tell whether the key exists', async (t) => {
  const gone = await makeAgent(app, { human });
  await app.call('POST', '/api/me/rotate-key', { key: gone.key });
  const ask = (sent: string) => get('/api/me', { headers: { authorization: `Token ${sent}` } });
  const [known, unknown] = [await ask(key), await ask(gone.key)];
  t.equal(unknown.status, known.status);
  t.same({ ...unknown.body, request_id: '' }, { ...known.body, request_id: '' });
  const headers = { 'x-api-key': gone.key };
  t.match(await get('/api/me', { headers }), { status: 401, body: { code: 'INVALID_API_KEY' } });
});

t.test('the upgrade of the websocket says the same', async (t) => {
  const socket = await connect(t, app.port, { headers: { authorization: `Token ${key}` } });
  const frame = await socket.get('a refusal', ({ op }) => op === 'error');
  t.match(frame['error'], to_key);
  t.equal(await socket.closed(), 4001);
});
