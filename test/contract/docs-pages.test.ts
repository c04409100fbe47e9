import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { SaxesParser } from 'saxes';
import { t } from 'tap';
import { frame_examples } from '../../src/features/docs/event-examples.js';
import { verify_sample } from '../../src/features/docs/event-page.js';
import { makeDelivery } from '../../src/features/docs/event-reference.js';
import { readReference } from '../../src/features/docs/reference.js';
import { renderReference } from '../../src/features/docs/reference-page.js';
import { catalogue } from '../../src/features/events/index.js';
import type { Route } from '../../src/kit/http/route.js';
import { compileCheck } from '../../src/kit/http/validate.js';
import { all_routes } from '../../src/routes.js';
import { startApp } from '../help/app.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent } from '../help/story.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/** The pages of the reference and the texts for agents: whole, safe, and true. */

const app = await startApp(t, { roles: ['api'] });
const routes = (all_routes as readonly Route[]).filter(({ documented }) => documented);
const pages = ['/docs', '/docs/events', '/docs/webhooks'] as const;
const texts = new Map<string, string>();
for (const path of [...pages, '/llms.txt', '/llms-full.txt']) {
  texts.set(path, (await app.call('GET', path)).body);
}
const textOf = (path: string): string => texts.get(path) ?? '';

const idsIn = (page: string): readonly string[] =>
  Array.from(page.matchAll(/\sid="([^"]+)"/g), ([, id = '']) => id);

t.test('every operation stands in the reference, under an anchor of its own', async (t) => {
  const page = textOf('/docs');
  const ids = idsIn(page);
  t.same(
    ids.filter((id, at) => ids.indexOf(id) !== at),
    [],
  );
  t.same(
    routes.map(({ id }) => id).filter((id) => !ids.includes(id)),
    [],
  );
  for (const { path, method } of routes) {
    t.ok(page.includes(`<span class="m ${method}">${method}</span> <code>${path}</code>`), path);
    t.ok(textOf('/llms-full.txt').includes(`### ${method} ${path}\n`), path);
  }
});

t.test('what a page loads, runs or leads to is its own', async (t) => {
  for (const path of pages) {
    const { headers, body } = await app.call('GET', path);
    const policy = headers.get('content-security-policy') ?? '';
    t.match(policy, /default-src 'none'/, path);
    t.notMatch(policy, /unsafe|https?:|\*/);
    t.notMatch(body, /<(?:link rel="stylesheet"|img|iframe|object|embed|base|form)\b/);
    t.notMatch(body, /\s(?:src|style|on[a-z]+)=/);
    for (const kind of ['style', 'script'] as const) {
      for (const [, text = ''] of body.matchAll(new RegExp(`<${kind}>(.*?)</${kind}>`, 'gs'))) {
        const hash = createHash('sha256').update(text).digest('base64');
        t.ok(policy.includes(`${kind}-src 'sha256-${hash}'`), `${path} ${kind}`);
      }
    }
    const elsewhere = [...body.matchAll(/href="([a-z]+:|\/\/)[^"]*"/g)].map(([found]) => found);
    t.same(elsewhere, [], path);
  }
});

/** Void elements closed and entities known: what is left must nest. */
const findBroken = (page: string): string | null => {
  const text = page
    .replace(/^<!doctype html>\n/, '')
    .replace(/<(meta|link|input|br)\b([^>]*)>/g, '<$1$2/>')
    .replace(/<(style|script)>.*?<\/\1>/gs, '')
    .replace(/<[a-z][^>]*>/g, (tag) => tag.replace(/\s(hidden|open|data-head)(?=\/?>)/, ' $1=""'));
  const parser = new SaxesParser();
  let problem: string | null = null;
  parser.on('error', (error) => {
    problem ??= error.message;
  });
  parser.write(text).close();
  return problem;
};

t.test('the pages are well-formed, and every link within them leads somewhere', async (t) => {
  t.not(findBroken('<!doctype html>\n<p><b>x</p>'), null);
  for (const path of pages) t.equal(findBroken(textOf(path)), null, path);
  const withoutScript = (page: string) => page.replace(/<script>.*?<\/script>/gs, '');
  const wanted = new Set<string>();
  for (const path of pages) {
    for (const [, href = ''] of withoutScript(textOf(path)).matchAll(/href="([^"]+)"/g)) {
      wanted.add(href.startsWith('#') ? path + href : href);
    }
  }
  t.ok(wanted.size > 200);
  for (const href of wanted) {
    const [path = '', anchor] = href.split('#');
    const page = texts.get(path) ?? (await app.call('GET', path)).body;
    t.ok((texts.has(path) || page.code === undefined) && page !== '', href);
    if (anchor !== undefined) t.ok(idsIn(page).includes(anchor), href);
  }
});

t.test('hostile words of a route stay words', async (t) => {
  const evil = `"><script>alert('x')</script><!--\`</code><img src=x>`;
  const { body } = await app.call('GET', '/openapi.json');
  const at = body.paths['/api/questions/{id}'].get;
  at.summary = evil;
  at.parameters.push({ name: evil, in: 'query', required: false, schema: { enum: [evil] } });
  at['x-codeSamples'][0].source = evil;
  at.responses['404']['x-faults'][0].sentence = evil;
  body.tags[0].description = evil;
  const page = renderReference(readReference(body), [
    { name: evil, limit: 1, per: evil, counts: [evil] },
  ]);
  t.equal(findBroken(page), null);
  t.equal(page.match(/<script>/g)?.length, 1);
  t.notMatch(page, /<img/);
});

/** The bytes as they come. */
const getBytes = (path: string, headers: Readonly<Record<string, string>>) =>
  new Promise<{ status: number; headers: http.IncomingHttpHeaders; bytes: Buffer }>(
    (resolve, reject) => {
      const asked = http.get(app.url + path, { headers }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => {
          const { statusCode: status = 0, headers: got } = answer;
          resolve({ status, headers: got, bytes: Buffer.concat(parts) });
        });
      });
      asked.on('error', reject);
    },
  );

t.test(
  'a page goes out packed to who takes that, and costs nothing when it is known',
  async (t) => {
    const plain = textOf('/docs');
    const ask = (accepted: string, etag?: string) =>
      getBytes('/docs', {
        'accept-encoding': accepted,
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
      });
    await until('it is packed', async () => (await ask('br')).headers['content-encoding'] === 'br');
    await until('twice', async () => (await ask('gzip')).headers['content-encoding'] === 'gzip');
    for (const [accepted, coding, unpack] of [
      ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
      ['gzip;q=1, br;q=0', 'gzip', gunzipSync],
    ] as const) {
      const { headers, bytes } = await ask(accepted);
      t.equal(headers['content-encoding'], coding);
      t.match(headers['vary'], /Accept-Encoding/);
      t.equal(unpack(bytes).toString(), plain);
      t.ok(bytes.length < plain.length / 5, `${bytes.length} of ${plain.length} bytes`);
      const again = await ask(accepted, headers['etag']);
      t.match(again, { status: 304, bytes: { length: 0 } });
      t.equal(again.headers['content-encoding'], undefined);
      t.match(again.headers['vary'], /Accept-Encoding/);
    }
    const bare = await ask('identity');
    t.equal(bare.headers['content-encoding'], undefined);
    t.equal(bare.bytes.toString(), plain);
  },
);

t.test('over the socket a page is its text, whatever coding is asked for', async (t) => {
  const socket = await openCalls(t, app.port);
  const headers = { 'accept-encoding': 'br, gzip' };
  for (const path of ['/docs', '/llms.txt', '/openapi.json'] as const) {
    const there = await app.call('GET', path);
    const here = await socket.call('GET', path, { headers });
    t.equal(here.status, 200, path);
    t.same(here.body, there.body, path);
    t.equal(here.headers.get('content-encoding'), null);
    t.equal(here.headers.get('content-type'), there.headers.get('content-type'));
  }
});

t.test('every event is told with an example that is one', async (t) => {
  const page = textOf('/docs/events');
  for (const { name, data } of catalogue) {
    t.ok(page.includes(`<h3><code>${name}</code>`), name);
    const delivery = makeDelivery(name, 'X-Svc');
    const body = JSON.parse(delivery.body);
    t.same(compileCheck(data, 'data')(body.data), null, name);
    t.same(
      Object.keys(body.data).filter((key) => !(key in data.properties)),
      [],
      name,
    );
    t.same(Object.keys(body), ['event', 'data', 'timestamp']);
  }
});

t.test('the signature that the page shows is what its own command prints', async (t) => {
  const delivery = makeDelivery('question.created', 'X-Svc');
  const page = textOf('/docs/events');
  const { stdout } = await promisify(execFile)('bash', ['-c', verify_sample(delivery)]);
  t.match(stdout, /^[0-9A-Za-z+/]{43}=\n$/);
  t.ok(page.includes(`webhook-signature: v1,${stdout.trim()}`));
});

t.test('the signature with a timestamp is taught first, everywhere', async (t) => {
  for (const path of ['/docs/events', '/docs/webhooks', '/llms.txt', '/llms-full.txt']) {
    const text = textOf(path);
    const [standard, older] = [text.indexOf('webhook-signature'), text.search(/X-Svc-Signature/i)];
    t.ok(standard > 0, path);
    t.ok(older === -1 || older > standard, path);
  }
});

t.test('every frame that the page shows is understood by the socket', async (t) => {
  const { key } = await makeAgent(app);
  const answers: Readonly<Record<string, string>> = {
    ...{ auth: 'authenticated', subscribe: 'subscribed', unsubscribe: 'unsubscribed' },
    ...{ call: 'reply', ping: 'pong' },
  };
  const socket = await connect(t, app.port);
  for (const [op, example] of Object.entries(frame_examples)) {
    const text = JSON.stringify(example).replace('$API_KEY', key);
    socket.send(JSON.parse(text));
    t.match(await socket.answer(Number(example['id'])), { op: answers[op] }, op);
  }
});

t.test('llms.txt has the form of llmstxt.org, and every link resolves', async (t) => {
  const text = textOf('/llms.txt');
  const [head = '', ...sections] = text.split(/^## /m);
  t.match(head, /^# [^\n]+\n\n> [^\n]+\n\n/);
  t.notMatch(head.slice(2), /^#/m, 'no other heading before the lists');
  for (const section of sections) {
    t.match(section, /^[^\n]+\n\n(?:- \[[^\]]+\]\(https?:\/\/[^)]+\)(?:: [^\n]+)?\n?)+\n*$/);
  }
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, url = '']) => new URL(url));
  t.ok(links.length > 20);
  for (const { pathname, search, hash } of links) {
    const { status, body } = await app.call('GET', pathname + search);
    t.equal(status, 200, pathname);
    if (hash !== '') t.ok(idsIn(body).includes(hash.slice(1)), hash);
  }
  for (const [, path = ''] of text.matchAll(/`(?:GET|POST) (\/[\w/{}-]+)/g)) {
    t.ok(
      routes.some((route) => route.path === path),
      path,
    );
  }
});
