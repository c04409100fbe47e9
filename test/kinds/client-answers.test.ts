import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { deflateRawSync, gzipSync } from 'node:zlib';
import type { Test } from 'tap';
import { retryAfterMs } from '#client/calls.js';
import { createClient, type Retry } from '#client/node.js';
import { startFront } from '../client/front.js';
import { no_limits, startApp } from '../help/app.js';
import { range } from '../help/hub.js';
import { project_root } from '../help/own-stores.js';
import { python, withoutPython } from '../help/python.js';
import { startReceiver } from '../help/receiver.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** How both clients treat redirects and odd answers. */

const app = await startApp(t, { env: no_limits });
const no_python = withoutPython();
const run = promisify(execFile);
const secret = 'sk_a-key-that-stays-at-home';

/** The result of a call, independent of the client. */
interface Outcome {
  readonly kind: 'ok' | 'refused' | 'none' | 'other';
  readonly code?: string | null;
  readonly status?: number | null;
  readonly retryable?: boolean | null;
  readonly message?: string;
  readonly wait_s?: number | null;
  // biome-ignore lint/suspicious/noExplicitAny: an answer is read by tests that know its shape.
  readonly value?: any;
}

const asOutcome = (error: unknown): Outcome => {
  const { name, code, status, message, fault } = error as {
    readonly name: string;
    readonly code?: string;
    readonly status?: number;
    readonly message: string;
    readonly fault?: { readonly retryable?: boolean };
  };
  if (name === 'Refused') {
    const retryable = fault?.retryable ?? null;
    return { kind: 'refused', code: code ?? null, status: status ?? null, retryable, message };
  }
  if (name === 'NoAnswer') return { kind: 'none', message };
  return { kind: 'other', message: `${name}: ${message}` };
};

const python_head = `
import json, sys
from prediction_forum import Forum, NoAnswer, Refused

def tell(call):
    try:
        return {"kind": "ok", "value": call()}
    except Refused as e:
        return {"kind": "refused", "code": e.code, "status": e.status, "retryable": e.retryable,
                "message": str(e), "wait_s": e.retry_after_s}
    except NoAnswer as e:
        return {"kind": "none", "message": str(e)}
    except BaseException as e:
        return {"kind": "other", "message": type(e).__name__ + ": " + str(e)}

given = json.loads(sys.argv[1])
`;

/** Runs a Python program that gets `given`, and returns the JSON value that it prints. */
const runPython = async (given: object, program: string, env: NodeJS.ProcessEnv = {}) => {
  const { stdout } = await run(python, ['-c', python_head + program, JSON.stringify(given)], {
    cwd: path.join(project_root, 'clients', 'python'),
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8', ...env },
    timeout: 120_000,
    maxBuffer: 64 * 1_024 * 1_024,
  });
  return JSON.parse(stdout);
};

/** Sends a POST with a key to each of these URLs, with both clients and a patience of zero. */
const registerAt = async (bases: readonly string[]) => {
  const body = { name: 'Sent elsewhere', model: 'gpt-4o' };
  const typescript: Outcome[] = [];
  for (const base_url of bases) {
    const client = createClient({ base_url, api_key: secret, patience_ms: 0 });
    const call = client.call('register', { body });
    typescript.push(await call.then((value) => ({ kind: 'ok', value }) as Outcome, asOutcome));
  }
  if (no_python !== false) return { typescript };
  const found: Outcome[] = await runPython(
    { bases, body, secret },
    `
out = []
for base in given["bases"]:
    with Forum(base, api_key=given["secret"], patience_s=0) as forum:
        out.append(tell(lambda: forum.register(given["body"])))
print(json.dumps(out))
`,
  );
  return { typescript, python: found };
};

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly key: string | undefined;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const listen = async (t: Pick<Test, 'teardown'>, answer: Answer) => {
  const seen: Seen[] = [];
  let upgrades_to: string | undefined;
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, key: headers['x-api-key'] as string | undefined });
    request.resume();
    request.once('end', () => answer(request, response));
  });
  server.on('upgrade', (request, socket) => {
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, key: headers['x-api-key'] as string | undefined });
    const to = upgrades_to;
    // A client may be gone before it has read the answer.
    socket.on('error', () => undefined);
    socket.end(
      to === undefined
        ? 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
        : `HTTP/1.1 302 Found\r\nLocation: ${to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const redirectUpgrades = (location: string): void => {
    upgrades_to = location;
  };
  return { url: `http://127.0.0.1:${port}`, port, seen, redirectUpgrades };
};

const json = { 'content-type': 'application/json' };
const good = (_: IncomingMessage, response: ServerResponse): void => {
  response.writeHead(200, json).end('{"user":{},"api_key":"sk_stolen"}');
};

/** A server that redirects to `to(own)`, where `own` is its own URL. */
const redirecting = async (t: Test, status: number, to: (own: string) => string | undefined) => {
  let own = '';
  const server = await listen(t, (_, response) => {
    const location = to(own);
    response.writeHead(status, location === undefined ? {} : { location }).end();
  });
  own = server.url;
  return server;
};

const checkRedirected = (t: Test, outcome: Outcome, status: number, what: string): void => {
  t.match(outcome, { kind: 'refused', code: 'REDIRECTED', status, retryable: false }, what);
};

t.test(
  'a relative Location is named as a whole address, and the POST is sent once',
  { timeout: 45_000 },
  async (t) => {
    const cases = [
      [301, '/forum/api/register'],
      [302, 'other/register'],
      [303, '?again=1'],
      [307, '/api/../moved/api/register'],
      [308, '/api/register/'],
    ] as const;
    const servers = await Promise.all(
      cases.map(([status, to]) => redirecting(t, status, () => to)),
    );
    const clients = await registerAt(servers.map(({ url }) => url));
    for (const [name, outcomes] of Object.entries(clients)) {
      for (const [n, [status, to]] of cases.entries()) {
        const { url } = servers[n]!;
        const whole = new URL(to, `${url}/api/register`).href;
        const outcome = outcomes[n]!;
        checkRedirected(t, outcome, status, `${name}: ${status} ${to}`);
        t.match(outcome.message, whole, `${name} names the whole address of ${to}`);
      }
    }
    for (const [n, { seen }] of servers.entries()) {
      t.same(
        seen.map(({ method }) => method),
        Object.keys(clients).map(() => 'POST'),
        `each client asked once, by POST, of ${cases[n]?.join(' ')}`,
      );
    }
  },
);

t.test(
  'a Location without a scheme leads to another host, which never sees the key',
  { timeout: 45_000 },
  async (t) => {
    const elsewhere = await listen(t, good);
    const to = `//127.0.0.1:${elsewhere.port}/api/register`;
    const servers = await Promise.all(
      [301, 307, 308].map((status) => redirecting(t, status, () => to)),
    );
    const clients = await registerAt(servers.map(({ url }) => url));
    for (const [name, outcomes] of Object.entries(clients)) {
      for (const [n, status] of [301, 307, 308].entries()) {
        checkRedirected(t, outcomes[n]!, status, `${name}: ${status} ${to}`);
        t.match(outcomes[n]?.message, elsewhere.url, `${name} names ${elsewhere.url}`);
      }
    }
    t.same(elsewhere.seen, [], 'nothing at all was sent to the other host');
  },
);

t.test(
  'a redirect without a Location, or to no address, is refused and not waited out',
  { timeout: 45_000 },
  async (t) => {
    const cases = [
      ['none', undefined],
      ['empty', ''],
      ['no address', 'http://[not-an-address'],
      ['a script', 'javascript:alert(1)'],
      ['a file', 'file:///etc/passwd'],
      ['with a person', 'https://forum:secret@forum.example/api/register'],
    ] as const;
    const servers = await Promise.all(cases.map(([, to]) => redirecting(t, 302, () => to)));
    const clients = await registerAt(servers.map(({ url }) => url));
    for (const [name, outcomes] of Object.entries(clients)) {
      for (const [n, [what]] of cases.entries()) {
        checkRedirected(t, outcomes[n]!, 302, `${name}: ${what}`);
        t.notMatch(
          outcomes[n]?.message,
          /undefined|None\b|null/,
          `${name}: a sentence for ${what}`,
        );
      }
    }
    for (const [n, { seen }] of servers.entries()) {
      t.equal(seen.length, Object.keys(clients).length, `asked once: ${cases[n]?.[0]}`);
    }
  },
);

t.test(
  'a loop of redirects, of one host or of two, is left at its first answer',
  { timeout: 45_000 },
  async (t) => {
    const self = await redirecting(t, 302, (own) => `${own}/api/register`);
    const pair = { there: '' };
    const here = await redirecting(t, 307, () => `${pair.there}/api/register`);
    const there = await redirecting(t, 307, () => `${here.url}/api/register`);
    pair.there = there.url;
    const clients = await registerAt([self.url, here.url]);
    const count = Object.keys(clients).length;
    for (const [name, outcomes] of Object.entries(clients)) {
      checkRedirected(t, outcomes[0]!, 302, `${name}: to itself`);
      checkRedirected(t, outcomes[1]!, 307, `${name}: to one that leads back`);
    }
    t.equal(self.seen.length, count);
    t.equal(here.seen.length, count);
    t.same(there.seen, [], 'the other half of the loop is never asked');
  },
);

t.test(
  'a redirect from https to http does not take the key into the open',
  { timeout: 45_000 },
  async (t) => {
    const open = await listen(t, good);
    const receiver = await startReceiver();
    t.teardown(() => receiver.close());
    const location = `${open.url}/api/register`;
    const redirect = { status: 307, headers: { location } };
    receiver.script('/api/register', redirect, redirect, redirect, redirect);
    const base = receiver.url('').replace(/\/$/, '');
    const given = { bases: [base], body: { name: 'In the open', model: 'gpt-4o' }, secret };
    const outcomes: Record<string, Outcome> = {};
    const program = `
    import { createClient } from '#client/node.js';
    const { bases, body, secret } = JSON.parse(process.argv[1]);
    const client = createClient({ base_url: bases[0], api_key: secret, patience_ms: 0 });
    const outcome = await client.call('register', { body }).then(
      (value) => ({ kind: 'ok', value }),
      ({ name, code, status, message, fault }) =>
        ({ kind: name, code, status, message, retryable: fault?.retryable }),
    );
    process.stdout.write(JSON.stringify(outcome));
    process.exit(0);`;
    const { stdout } = await run(
      process.execPath,
      ['--input-type=module', '-e', program, JSON.stringify(given)],
      { cwd: project_root, env: { ...process.env, NODE_EXTRA_CA_CERTS: receiver.ca_file } },
    );
    const outcome = JSON.parse(stdout) as Omit<Outcome, 'kind'> & { kind: string };
    outcomes['typescript'] = { ...outcome, kind: outcome.kind === 'Refused' ? 'refused' : 'other' };
    if (no_python === false) {
      outcomes['python'] = await runPython(
        given,
        `
with Forum(given["bases"][0], api_key=given["secret"], patience_s=0) as forum:
    print(json.dumps(tell(lambda: forum.register(given["body"]))))
`,
        { SSL_CERT_FILE: receiver.ca_file },
      );
    }
    for (const [name, outcome] of Object.entries(outcomes)) {
      checkRedirected(t, outcome, 307, name);
      t.match(outcome.message, open.url, `${name} names the address, so that a person sees http:`);
    }
    t.same(open.seen, [], 'the open address is never asked');
    t.equal(receiver.of('/api/register').length, Object.keys(outcomes).length);
  },
);

t.test(
  'a proxy that redirects the upgrade alone gets no key sent elsewhere',
  { timeout: 45_000 },
  async (t) => {
    const elsewhere = await listen(t, good);
    elsewhere.redirectUpgrades('http://127.0.0.1:9/ws');
    const front = await listen(t, (_, response) =>
      response.writeHead(200, json).end('{"events":[]}'),
    );
    front.redirectUpgrades(`${elsewhere.url}/ws`);
    const client = createClient({ base_url: front.url, api_key: secret });
    t.teardown(() => client.close());
    // Browsers hide why an upgrade failed, so this client retries the same URL.
    const tries: string[] = [];
    const stream = client.stream({ topics: ['all'], onStatus: ({ status }) => tries.push(status) });
    await until(
      'it tried again',
      () => tries.filter((status) => status === 'connecting').length > 1,
    );
    stream.close();
    await stream.done.catch(() => undefined);
    if (no_python === false) {
      const outcome = await runPython(
        { base: front.url, secret },
        `
with Forum(given["base"], api_key=given["secret"]) as forum:
    print(json.dumps(tell(lambda: next(forum.follow(["all"], after=0, transport="websocket")))))
`,
      );
      t.match(
        outcome,
        { kind: 'refused', code: 'REDIRECTED' },
        'python: a stream over a websocket',
      );
      t.match(outcome.message, elsewhere.url);
    }
    t.same(elsewhere.seen, [], 'nobody knocked at the other address');
  },
);

t.test(
  'a log that is redirected in the middle ends with what came, and with its reason',
  { timeout: 45_000 },
  async (t) => {
    const elsewhere = await listen(t, good);
    const event = (offset: number) => ({
      offset,
      id: `0190a000-0000-7000-8000-${String(offset).padStart(12, '0')}`,
      event: 'question.closed',
      data: { question_id: '0190a000-0000-7000-8000-00000000000a', question: 'Größe?' },
      timestamp: '2026-11-01T00:00:00.000Z',
    });
    const page = { events: [event(1), event(2)], next: 2, next_cursor: null, head: 2, oldest: 1 };
    let asked = 0;
    const front = await listen(t, (_, response) => {
      asked += 1;
      if (asked === 1) response.writeHead(200, json).end(JSON.stringify({ ...page, gap: null }));
      else response.writeHead(308, { location: `${elsewhere.url}/api/events` }).end();
    });
    if (no_python !== false) return t.comment(no_python);
    const outcome = await runPython(
      { base: front.url, secret },
      `
offsets = []
def read():
    for event in forum.follow(["all"], after=0, transport="http"):
        offsets.append(event["offset"])
with Forum(given["base"], api_key=given["secret"]) as forum:
    outcome = tell(read)
print(json.dumps({**outcome, "value": offsets}))
`,
    );
    t.match(outcome, { kind: 'refused', code: 'REDIRECTED', status: 308, value: [1, 2] });
    t.match(outcome.message, elsewhere.url);
    t.same(elsewhere.seen, []);
  },
);

t.test(
  'answers of others, and broken ones, are no answer; media types ignore case',
  { timeout: 45_000 },
  async (t) => {
    const body = '{"user":{"name":"Größe"},"api_key":"k"}';
    const of = (headers: Record<string, string>, text: string | Buffer, status = 200): Answer => {
      return (_, response) => void response.writeHead(status, headers).end(text);
    };
    const html = { 'content-type': 'text/html; charset=utf-8' };
    const cases: readonly (readonly [string, Outcome['kind'], Answer])[] = [
      ['a login page', 'none', of(html, '<!doctype html><title>Log in</title>')],
      ['JSON that says it is a page', 'none', of(html, body)],
      ['text/plain', 'none', of({ 'content-type': 'text/plain' }, body)],
      ['no type at all', 'none', of({}, body)],
      ['a type that only begins so', 'none', of({ 'content-type': 'application/jsonp' }, body)],
      ['odd case', 'ok', of({ 'content-type': 'aPPlication/JSON;CHARSET=UTF-8' }, body, 201)],
      ['+json', 'ok', of({ 'content-type': 'Application/Vnd.Forum+JSON ; q="a;b"' }, body)],
      ['an empty text', 'none', of(json, '')],
      ['blanks', 'none', of(json, ' \r\n')],
      ['half of it', 'none', of(json, body.slice(0, -9))],
      ['two values', 'none', of(json, `${body}${body}`)],
      ['NaN', 'none', of(json, '{"user":NaN,"api_key":"k"}')],
      ['bytes that are no UTF-8', 'none', of(json, Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))],
      ['204', 'none', of({}, '', 204)],
      ['no gzip', 'none', of({ ...json, 'content-encoding': 'gzip' }, 'this was never packed')],
      [
        'half a gzip',
        'none',
        of({ ...json, 'content-encoding': 'gzip' }, gzipSync(body).subarray(0, 20)),
      ],
      ['gzip', 'ok', of({ ...json, 'content-encoding': 'gzip' }, gzipSync(body))],
      ['no deflate', 'none', of({ ...json, 'content-encoding': 'gzip' }, deflateRawSync(body))],
      [
        'fewer bytes than were promised',
        'none',
        (_, response) => {
          response.writeHead(200, { ...json, 'content-length': '5000' });
          response.write(body.slice(0, 20), () => response.socket?.destroy());
        },
      ],
    ];
    const servers = await Promise.all(cases.map(([, , answer]) => listen(t, answer)));
    const clients = await registerAt(servers.map(({ url }) => url));
    for (const [name, outcomes] of Object.entries(clients)) {
      for (const [n, [what, kind]] of cases.entries()) {
        t.equal(outcomes[n]?.kind, kind, `${name}: ${what} (${outcomes[n]?.message ?? ''})`);
        if (kind === 'ok') t.equal(outcomes[n]?.value.user.name, 'Größe', `${name}: ${what}`);
      }
    }
    const problem = await listen(t, (_, response) => {
      const type = { 'content-type': 'Application/Problem+JSON' };
      const fault = { error: 'No.', code: 'DUPLICATE_NAME', status: 409, retryable: false };
      response.writeHead(409, type).end(JSON.stringify(fault));
    });
    const marked = await listen(t, of(json, `\uFEFF${body}`));
    const more = await registerAt([problem.url, marked.url]);
    const kinds = Object.entries(more).map(([name, [refused, bom]]) => {
      t.match(
        refused,
        { kind: 'refused', code: 'DUPLICATE_NAME', status: 409 },
        `${name}: problem`,
      );
      t.ok(
        bom?.kind === 'ok' || bom?.kind === 'none',
        `${name}: a mark before JSON, ${bom?.message}`,
      );
      return bom?.kind;
    });
    t.equal(new Set(kinds).size, 1, 'both clients take a byte order mark alike');
  },
);

t.test(
  'Retry-After of any kind makes a wait that is finite, and above or equal to zero',
  { timeout: 45_000 },
  async (t) => {
    const exact: readonly (readonly [string, number])[] = [
      ['Wed, 21 Oct 2099 07:28:00 GMT', 3_600],
      ['Wed, 21 Oct 1999 07:28:00 GMT', 0],
      ['-5', 0],
      ['-0.000001', 0],
      ['0.5', 0.5],
      ['abc', 0],
      ['NaN', 0],
      ['-Infinity', 0],
    ];
    const odd = [
      '1e9',
      '1e400',
      '0x10',
      '1_000',
      '\u0661\u0662',
      '5, 7',
      '+3',
      '3s',
      '00',
      '.',
      '--5',
    ];
    const texts = [
      ...exact.map(([text]) => text),
      ...odd.filter((text) => !/[^\x20-\x7e]/.test(text)),
    ];
    for (const [text, wait_s] of exact) {
      t.equal(retryAfterMs(new Headers({ 'retry-after': text })), wait_s * 1_000, text);
    }
    for (const text of texts) {
      const ms = retryAfterMs(new Headers({ 'retry-after': text }));
      t.ok(Number.isFinite(ms) && ms >= 0 && ms <= 3_600_000, `typescript: ${text}: ${ms}`);
    }
    const limited = (text: string): Answer => {
      return (_, response) =>
        void response.writeHead(429, { ...json, 'retry-after': text }).end('{}');
    };
    const servers = await Promise.all(texts.map((text) => listen(t, limited(text))));
    const { python: all = [] } = await registerAt(servers.map(({ url }) => url));
    for (const [n, outcome] of all.entries()) {
      const wait = outcome.wait_s ?? 0;
      t.equal(outcome.kind, 'refused', `python: ${texts[n]}: ${outcome.message}`);
      t.ok(Number.isFinite(wait) && wait >= 0 && wait <= 3_600, `python: ${texts[n]}: ${wait}`);
      const known = exact.find(([text]) => text === texts[n]);
      if (known !== undefined) t.equal(wait, known[1], `python: ${texts[n]}`);
    }
    const front = await startFront(t, app.url);
    for (const [text, tries] of [
      ['-5', 2],
      ['abc', 2],
      ['0.5', 2],
      ['Wed, 21 Oct 2099 07:28:00 GMT', 1],
      ['1e9', 1],
    ] as const) {
      front.seen.length = 0;
      front.moods.push({ status: 503, headers: { 'retry-after': text } });
      const retries: Retry[] = [];
      const client = createClient({ base_url: front.url, onRetry: (retry) => retries.push(retry) });
      const outcome = await client.attempt('listQuestions', { query: { limit: 1 } });
      front.moods.length = 0;
      if (text !== '1e9') t.equal(front.seen.length, tries, `${text}: how often it was asked`);
      t.equal(outcome.ok, front.seen.length === 2, `${text}: whoever waits gets the answer`);
      for (const { wait_ms } of retries)
        t.ok(wait_ms >= 0 && wait_ms <= 30_000, `${text}: ${wait_ms}`);
    }
  },
);

t.test(
  'a hundred ids go in addresses below 1,200 bytes, and each answer is whole',
  { timeout: 45_000 },
  async (t) => {
    const ids = await Promise.all(range(1, 100).map(() => makeOpenQuestion(app)));
    const { key } = await makeAgent(app, { human: await makeHuman(app) });
    const { body: api } = await app.call('GET', '/openapi.json');
    const { operationId, parameters } = api.paths['/api/consensus'].get as {
      readonly operationId: 'listQuestions';
      readonly parameters: readonly { readonly name: string }[];
    };
    const named = parameters.map(({ name }) => name).find((name) => /ids$/.test(name)) ?? 'ids';
    const idsIn = (value: unknown): string[] => [
      ...new Set([...JSON.stringify(value).matchAll(/[0-9a-f-]{36}/g)].map(([id]) => id)),
    ];
    const wanted = [...ids].sort();
    const isWanted = (id: string): boolean => ids.includes(id);
    const front = await startFront(t, app.url);
    const client = createClient({ base_url: front.url, api_key: key });
    const listed = await client.call('listQuestions', {
      query: { ids, status: 'all', limit: 100 },
    });
    t.same(listed.questions.map(({ id }) => id).sort(), wanted, 'typescript: listQuestions');
    t.equal(listed.total, 100);
    const many = await client.call(operationId, { query: { [named]: ids } as never });
    t.same(idsIn(many).filter(isWanted).sort(), wanted, `typescript: ${operationId}`);
    if (no_python === false) {
      const snake = operationId.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);
      const outcome = await runPython(
        { base: front.url, ids, snake, named },
        `
with Forum(given["base"]) as forum:
    listed = tell(lambda: forum.list_questions(ids=given["ids"], status="all", limit=100))
    many = tell(lambda: getattr(forum, given["snake"])(**{given["named"]: given["ids"]}))
print(json.dumps([listed, many]))
`,
      );
      for (const [n, what] of ['list_questions', snake].entries()) {
        t.equal(outcome[n].kind, 'ok', `python: ${what}: ${outcome[n].message}`);
        t.same(idsIn(outcome[n].value).filter(isWanted).sort(), wanted, `python: ${what}`);
      }
    }
    for (const { path: asked } of front.seen) {
      t.ok(front.url.length + asked.length < 1_200, `${front.url.length + asked.length} bytes`);
    }
  },
);
