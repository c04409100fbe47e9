import { no_limits, startApp, type TestApp } from '../help/app.js';
import { findBarriers, openBrowser, without_chromium } from '../help/browser.js';
import { startFaultyProxy } from '../help/faulty-proxy.js';
import { askOnce, openRaw, type RawAnswer } from '../help/raw-http.js';
import { predict } from '../help/settling.js';
import { openStores } from '../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * Refusals that people in a browser see as pages. `app` has no limits. `limited` has small limits
 * per address in `X-Forwarded-For`. `frail` loses its database. Each case was written from the
 * documentation alone.
 */

const stores = await openStores(t);
const env = { ...no_limits, TRUSTED_PROXIES: '127.0.0.1/32' };
const app = await startApp(t, { roles: ['api', 'relay'], env, stores });
const limited = await startApp(t, {
  roles: ['api'],
  stores,
  env: { ...env, LIMIT_IP: '20', LIMIT_LOGIN: '2' },
});
const proxy = await startFaultyProxy(t, stores.database_url);
const frail = await startApp(t, {
  roles: ['api'],
  stores,
  env: { ...env, DATABASE_URL: proxy.url, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
});

const browser_accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const missing = '00000000-0000-7000-8000-000000000000';
const human = await makeHuman(app);
const other = await makeHuman(app);
const question = await makeOpenQuestion(app);
const draft = await makeOpenQuestion(app, { publish: false });

interface Asked {
  readonly from?: string;
  readonly accept?: string | null;
  readonly headers?: readonly string[];
  readonly body?: string;
}

const ask = (
  { port }: TestApp,
  start: string,
  { from = '198.51.100.1', accept = browser_accept, headers = [], body = '' }: Asked = {},
): Promise<RawAnswer> =>
  askOnce(port, start, {
    headers: [
      ...(accept === null ? [] : [`Accept: ${accept}`]),
      `X-Forwarded-For: ${from}`,
      ...(body === '' ? [] : ['Content-Type: application/x-www-form-urlencoded']),
      ...headers,
    ],
    body,
  });

type Check = { equal: typeof t.equal; match: typeof t.match; notMatch: typeof t.notMatch };

/** Checks that an answer is a page in the site's style, with the request id but no internals. */
const isPage = (
  t: Check,
  { status, headers, text }: RawAnswer,
  wanted: number,
  name = '',
): void => {
  t.equal(status, wanted, name);
  t.equal(headers['content-type'], 'text/html; charset=utf-8', name);
  t.equal(headers['cache-control'], 'no-store', name);
  t.match(headers['content-security-policy'], /frame-ancestors 'none'/, name);
  t.match(
    text,
    /<html lang="en">.*href="\/assets\/[^"]+\.css".*<a class="brand" href="\/">/s,
    name,
  );
  t.match(text, /<title>[^<]+<\/title>.*<h1>[^<]+<\/h1>\s*<p>[^<]+<\/p>/s, name);
  t.match(text, `request <code>${headers['x-request-id']}</code>`, name);
  t.notMatch(text, /"code":|\bat \w+ \(|\.[jt]sx?:\d|select .* from|postgres/i, name);
};

const isJson = (t: Check, { status, headers, text }: RawAnswer, wanted: number, code: string) => {
  t.equal(status, wanted);
  t.equal(headers['content-type'], 'application/json');
  const { request_id, ...body } = JSON.parse(text);
  t.match(body, { code, status: wanted, error: String, category: String, retryable: Boolean });
  t.equal(request_id, headers['x-request-id']);
};

/* Missing pages. */

t.test('a question that is not there is a page', async (t) => {
  isPage(t, await ask(app, `GET /questions/${missing}`), 404);
});

for (const accept of ['*/*', null, 'image/png', ';;q=x', 'application/json;q=0']) {
  t.test(`the address of a page refuses as a page, asked with Accept ${accept}`, async (t) => {
    isPage(t, await ask(app, `GET /questions/${missing}`, { accept }), 404);
    isPage(t, await ask(app, `GET /predictions/${missing}`, { accept }), 404);
  });
}

t.test('a page that is also there as JSON refuses as JSON where that is asked for', async (t) => {
  for (const accept of ['application/json', 'text/html;q=0.1, application/json']) {
    const asked = { accept };
    isJson(t, await ask(app, `GET /questions/${missing}`, asked), 404, 'QUESTION_NOT_FOUND');
    isPage(t, await ask(app, `GET /agents/${missing}`, asked), 404);
  }
});

const broken_ids = ['not-an-id', '%F0%9F', '%E0%A4%A', '%00', '..%2f..%2fetc', 'x'.repeat(4_000)];
for (const id of broken_ids) {
  t.test(`an id that cannot be one is a page: ${id.slice(0, 20)}`, async (t) => {
    isPage(t, await ask(app, `GET /questions/${id}`), 404);
  });
}

t.test('what stands in the address stays text', async (t) => {
  for (const path of [
    '/questions/%3Cscript%3Ealert(1)%3C/script%3E',
    '/a/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E',
    '/account/%22%3E%3Cimg%20src=x%3E',
  ]) {
    const answer = await ask(app, `GET ${path}`);
    isPage(t, answer, 404, path);
    t.notMatch(answer.text, /<script>alert|<img src=x/);
  }
  const { text } = await ask(app, 'GET /questions?category=%3Cb%3Ebold');
  t.match(text, '&lt;b>bold');
  t.notMatch(text, '<b>bold');
});

t.test('an unknown path is a page for a browser, and JSON for a program', async (t) => {
  for (const path of ['/no-such-page', '/docs/nope', '/docs/guide/nope', '/questions/a/b/c']) {
    isPage(t, await ask(app, `GET ${path}`), 404, path);
  }
  for (const accept of ['application/json', '*/*', null, 'text/html;q=0, */*']) {
    isJson(t, await ask(app, 'GET /no-such-page', { accept }), 404, 'NOT_FOUND');
  }
});

t.test('the API stays JSON, whatever is asked for', async (t) => {
  for (const [path, status, code] of [
    [`/api/questions/${missing}`, 404, 'QUESTION_NOT_FOUND'],
    ['/api/no-such', 404, 'NOT_FOUND'],
    ['/api/questions?category=nope', 400, 'INVALID_CATEGORY'],
  ] as const) {
    isJson(t, await ask(app, `GET ${path}`, { accept: 'text/html' }), status, code);
  }
});

t.test('an unknown category is refused everywhere', async (t) => {
  for (const query of ['category=nope', 'category=technology&subcategory=nope', 'tag=nope']) {
    for (const accept of [browser_accept, '*/*', null]) {
      const { status, headers, text } = await ask(app, `GET /questions?${query}`, { accept });
      t.equal(status, 400, query);
      t.match(headers['content-type'], /^text\/html/);
      t.equal(headers['etag'], undefined);
      t.match(text, /Unknown (?:topic|subtopic|tag) “<bdi>nope<\/bdi>”/);
    }
  }
  const feed = await ask(app, 'GET /feed.xml?category=nope');
  isJson(t, feed, 400, 'INVALID_CATEGORY');
});

t.test('a draft is to others as what is not there', async (t) => {
  const plain = ({ headers, text }: RawAnswer): string =>
    text.replaceAll(headers['x-request-id'] ?? '', '');
  const cookie = [`Cookie: session=${other.token}`];
  const answers = [
    await ask(app, `GET /questions/${draft}`),
    await ask(app, `GET /questions/${draft}`, { headers: cookie }),
    await ask(app, `GET /questions/${missing}`),
  ];
  for (const answer of answers) isPage(t, answer, 404);
  t.equal(new Set(answers.map(plain)).size, 1);
});

t.test('to a person who is no admin there are no pages of admins', async (t) => {
  const headers = [`Cookie: session=${human.token}`, `Origin: ${app.url}`];
  for (const start of ['GET /admin', 'GET /admin/nope', 'GET /admin/audit']) {
    isPage(t, await ask(app, start, { headers }), 404, start);
  }
  isPage(t, await ask(app, 'POST /admin/import', { headers, body: 'a=b' }), 404);
  isPage(t, await ask(app, 'POST /admin/nope', { headers, body: 'a=b' }), 404);
  // A visitor may be an admin who is logged out, so the page redirects to the login.
  t.equal((await ask(app, 'GET /admin')).headers['location'], '/account/login?next=%2Fadmin');
});

t.test('another method is refused with those that there are', async (t) => {
  for (const start of [`DELETE /questions/${question}`, 'PUT /']) {
    const answer = await ask(app, start);
    isPage(t, answer, 405, start);
    t.match(answer.headers['allow'], /GET/);
  }
  const called = await ask(app, 'DELETE /api/questions');
  isJson(t, called, 405, 'METHOD_NOT_ALLOWED');
  t.match(called.headers['allow'], /GET/);
});

t.test('a form of another site is refused as a page that says what to do', async (t) => {
  const headers = [`Cookie: session=${human.token}`, 'Origin: https://evil.example'];
  const answer = await ask(app, 'POST /account/settings', { headers, body: 'act=name&name=X' });
  isPage(t, answer, 403);
  t.match(answer.text, /This form came from another site. Open the page here/);
});

t.test('surfaces for programs refuse as JSON, also to a browser', async (t) => {
  for (const path of [
    '/oembed?url=https://other.example/x',
    `/questions/${missing}/feed.xml`,
    `/api/questions/${missing}/chart.png`,
  ]) {
    isJson(t, await ask(app, `GET ${path}`), 404, 'QUESTION_NOT_FOUND');
  }
});

/* As HTTP. */

t.test('a refusal comes as it is, however a browser asks to have it packed', async (t) => {
  const texts = new Set<string>();
  for (const coding of ['gzip', 'gzip;q=0', 'identity', 'br', '*', null]) {
    const headers = [
      'X-Request-Id: packed-1',
      ...(coding === null ? [] : [`Accept-Encoding: ${coding}`]),
    ];
    const { headers: got, text } = await ask(app, `GET /questions/${missing}`, { headers });
    t.equal(got['content-encoding'], undefined);
    t.equal(Number(got['content-length']), Buffer.byteLength(text));
    texts.add(text);
  }
  t.equal(texts.size, 1);
});

t.test('no cache keeps a refusal', async (t) => {
  const good = await ask(app, 'GET /questions?q=kept');
  for (const line of [
    'If-None-Match: *',
    `If-None-Match: ${good.headers['etag']}`,
    `If-Modified-Since: ${new Date().toUTCString()}`,
  ]) {
    const answer = await ask(app, `GET /questions/${missing}`, { headers: [line] });
    isPage(t, answer, 404, line);
    t.equal(answer.headers['etag'], undefined);
  }
});

t.test('a request without a word about its client gets a page', async (t) => {
  const answer = await ask(app, 'GET /', { accept: null });
  t.match(answer, { status: 200, headers: { 'content-type': /^text\/html/ } });
});

/* Too many requests. */

/** Uses up the limit of an address. */
const useUp = async (from: string): Promise<void> => {
  const one = (n: number) =>
    ask(limited, `GET /api/taxonomy?nothing=${n}`, { from, headers: ['Cache-Control: no-cache'] });
  const answers = await Promise.all(Array.from({ length: 25 }, (_, n) => one(n)));
  if (!answers.some(({ status }) => status === 429)) throw new Error('it is not used up');
};

/** The seconds that a refusal names, in its text and in its header. */
const secondsOf = ({ headers, text }: RawAnswer): readonly [text: number, header: number] => {
  const [, said = ''] = /\b(\d+) s(?:econds?)?\b/.exec(text) ?? [];
  return [Number(said), Number(headers['retry-after'])];
};

t.test('of thirty pages an address gets twenty, then pages that say when', async (t) => {
  const from = '192.0.2.1';
  const answers: RawAnswer[] = [];
  for (let n = 0; n < 30; n += 1) {
    answers.push(await ask(limited, `GET /questions?q=word${n}`, { from }));
  }
  t.same(
    answers.map(({ status }) => status),
    [...Array(20).fill(200), ...Array(10).fill(429)],
  );
  for (const answer of answers.slice(20)) {
    isPage(t, answer, 429);
    const [said, header] = secondsOf(answer);
    t.equal(said, header);
    t.ok(header >= 1 && header <= 60);
  }
});

t.test('a call of the API says the same seconds in its sentence', async (t) => {
  const from = '192.0.2.2';
  await useUp(from);
  const answer = await ask(limited, 'GET /api/questions?q=word', { from });
  isJson(t, answer, 429, 'RATE_LIMITED');
  const { error, category, retryable } = JSON.parse(answer.text);
  t.match({ category, retryable }, { category: 'rate_limited', retryable: true });
  const seconds = Number(answer.headers['retry-after']);
  t.match(error, new RegExp(`\\b${seconds} s(?:\\b|econd)`));
});

t.test('HEAD is refused as GET is, and the connection goes on', async (t) => {
  const from = '192.0.2.3';
  await useUp(from);
  const lines = `Host: a\r\nAccept: ${browser_accept}\r\nX-Forwarded-For: ${from}\r\n\r\n`;
  for (const [path, type] of [
    ['/questions?q=x', 'text/html; charset=utf-8'],
    ['/account', 'text/html; charset=utf-8'],
    ['/api/questions?q=x', 'application/json'],
  ] as const) {
    const raw = openRaw(limited.port);
    raw.write(`HEAD ${path} HTTP/1.1\r\n${lines}`);
    const head = await raw.next({ head: true });
    t.match(head, { status: 429, headers: { 'content-type': type, 'retry-after': /^\d+$/ } });
    raw.write('GET /health HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.33\r\n\r\n');
    t.equal((await raw.next())?.status, 200);
    raw.reset();
  }
});

/** URLs of the site's own files that a page makes the browser load. */
const filesOf = (html: string): readonly string[] => [
  ...new Set(
    [...html.matchAll(/(?:href|src)="(\/(?:assets\/[^"]+|favicon\.\w+))"/g)].map(
      ([, at = '']) => at,
    ),
  ),
];

t.test('the files of a page cost nothing, and are there when nothing is left', async (t) => {
  const from = '192.0.2.4';
  const home = await ask(limited, 'GET /', { from });
  await useUp(from);
  const refused = await ask(limited, 'GET /questions?q=y', { from });
  isPage(t, refused, 429);
  const files = [...new Set([...filesOf(home.text), ...filesOf(refused.text), '/favicon.ico'])];
  t.ok(files.length >= 4, files.join());
  for (const path of files) {
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await ask(limited, `${method} ${path}`, { from, accept: '*/*' });
      t.equal(status, 200, path);
      t.notOk(
        Object.keys(headers).some((name) => name.startsWith('ratelimit')),
        path,
      );
    }
  }
});

t.test('the files of a page are not counted', async (t) => {
  const from = '192.0.2.5';
  const left = async (): Promise<number> => {
    const { text } = await ask(limited, 'GET /api/limits', { from });
    return JSON.parse(text).limits.find(({ name }: { name: string }) => name === 'ip').left;
  };
  const files = filesOf((await ask(limited, 'GET /', { from })).text);
  const before = await left();
  for (const path of files) {
    await Promise.all(Array.from({ length: 20 }, () => ask(limited, `GET ${path}`, { from })));
  }
  t.ok((await left()) >= before - 1);
});

t.test('a name like that of a file gets nothing for free', async (t) => {
  const from = '192.0.2.6';
  await useUp(from);
  for (const path of [
    '/api/questions?q=x.css',
    '/questions/style.css',
    '/api/questions;a.js',
    '/assets/../api/questions',
    '/assets/none/style.css',
    '/no-such-asset.css',
  ]) {
    const { status, text } = await ask(limited, `GET ${path}`, { from });
    t.ok([404, 429].includes(status), `${path}: ${status}`);
    t.notMatch(text, question, path);
  }
});

t.test('too many log-ins are refused as a page, with the form', async (t) => {
  const from = '192.0.2.7';
  const body = new URLSearchParams({ email: human.email, password: 'a wrong one' }).toString();
  const headers = [`Origin: ${limited.url}`];
  const answers: RawAnswer[] = [];
  for (let n = 0; n < 5; n += 1) {
    answers.push(await ask(limited, 'POST /account/login', { from, headers, body }));
  }
  t.same(
    answers.map(({ status }) => status),
    [401, 401, 429, 429, 429],
  );
  for (const answer of answers.slice(2)) {
    t.match(answer.headers['content-type'], /^text\/html/);
    t.match(answer.text, /<form[^>]*action="\/account\/login"/, 'a way back to the form');
    const [said, header] = secondsOf(answer);
    t.ok(header >= 1);
    t.equal(said, header);
  }
});

/* Widgets. */

/** A small page that may be in a frame. */
const isWidget = (t: Check, { status, headers, text }: RawAnswer, wanted: number): void => {
  t.equal(status, wanted);
  t.match(headers['content-type'], /^text\/html/);
  t.match(headers['content-security-policy'], /frame-ancestors \*/);
  t.equal(headers['x-frame-options'], undefined);
  t.match(text, /<main class="gone"><h1>[^<]+<\/h1>/);
  t.notMatch(text, /<header/);
};

t.test('a widget of what is not there is a small page', async (t) => {
  const answers = [];
  for (const id of [missing, 'nope', draft]) answers.push(await ask(app, `GET /embed/${id}`));
  for (const answer of answers) isWidget(t, answer, 404);
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
});

t.test('a widget that is refused is a small page', async (t) => {
  const from = '192.0.2.8';
  await useUp(from);
  for (const path of [`/embed/${question}?view=compact&n=1`, '/embed/leaderboard?limit=7&n=2']) {
    const answer = await ask(limited, `GET ${path}`, { from });
    isWidget(t, answer, 429);
    const [said, header] = secondsOf(answer);
    t.ok(header >= 1);
    t.equal(said, header);
    const to_program = await ask(limited, `GET ${path}`, { from, accept: '*/*' });
    isJson(t, to_program, 429, 'RATE_LIMITED');
  }
});

/* A store is down. */

t.test('without its database the forum says so, and comes back', async (t) => {
  const cookie = [`Cookie: session=${human.token}`];
  const pages: readonly (readonly [string, readonly string[]])[] = [
    ['/questions?q=new', []],
    ['/account', cookie],
    [`/questions/${question}`, []],
    [`/agents/${missing}`, []],
  ];
  proxy.refuseAll();
  for (const [path, headers] of pages) {
    const answer = await ask(frail, `GET ${path}`, { headers });
    isPage(t, answer, 503, path);
    t.ok(Number(answer.headers['retry-after']) >= 1);
  }
  const widget = await ask(frail, `GET /embed/${question}`);
  isWidget(t, widget, 503);
  t.ok(Number(widget.headers['retry-after']) >= 1);
  const called = await ask(frail, 'GET /api/questions?q=new');
  isJson(t, called, 503, 'UNAVAILABLE');
  t.ok(Number(called.headers['retry-after']) >= 1);
  proxy.heal();
  for (const [path, headers] of pages.slice(0, 3)) {
    await until(`${path} is back`, async () => {
      return (await ask(frail, `GET ${path}`, { headers })).status === 200;
    });
  }
});

t.test('a form that cannot be stored is refused as a page, and works once later', async (t) => {
  const fields = { url: 'https://127.0.0.1:18443/hook', events: 'prediction.placed', active: 'on' };
  const send = () =>
    ask(frail, 'POST /account/webhooks/new', {
      headers: [`Cookie: session=${human.token}`, `Origin: ${frail.url}`],
      body: new URLSearchParams(fields).toString(),
    });
  const count = async (): Promise<number> => {
    const [row] = await app.sql<{ n: number }[]>`select count(*)::integer as n from webhooks`;
    return row?.n ?? -1;
  };
  const before = await count();
  const name = new URL(stores.database_url).pathname.slice(1);
  const setReadOnly = async (to: 'on' | 'off'): Promise<void> => {
    await app.sql.unsafe(`alter database "${name}" set default_transaction_read_only = ${to}`);
    proxy.refuseAll();
    proxy.heal();
  };
  await setReadOnly('on');
  const refused = await until('it is refused', async () => {
    const answer = await send();
    return answer.status === 503 && answer;
  });
  t.match(refused.headers['content-type'], /^text\/html/);
  t.ok(Number(refused.headers['retry-after']) >= 1, 'it says when to try again');
  t.match(refused.text, /cannot answer right now/);
  t.equal(await count(), before);
  await setReadOnly('off');
  await until('it is stored', async () => (await send()).status < 400);
  t.equal(await count(), before + 1);
});

/* In a browser. */

t.test(
  'a page that is refused while it follows keeps what it shows',
  { skip: without_chromium },
  async (t) => {
    const agent = await makeAgent(app, { human });
    const shown = await makeOpenQuestion(app);
    const browser = await openBrowser(t);
    // The browser's requests come from the address of this machine.
    const opened = await browser.open(`${limited.url}/questions/${shown}`);
    const { page } = opened;
    const is_live = `document.documentElement.classList.contains('live')`;
    await until('the page is live', () => opened.evaluate(is_live));
    await useUp('127.0.0.1');
    const before = await page.locator('h1').textContent();
    const refused = page.waitForResponse((answer) => answer.status() === 429);
    await predict(app, agent, shown, { prediction: true, confidence: 80 });
    await refused;
    t.equal(await page.locator('h1').textContent(), before);
    t.notMatch(await page.content(), /Too many requests/);
  },
);

t.test(
  'refusals have no barriers, and are shown in the look of the site',
  { skip: without_chromium },
  async (t) => {
    const browser = await openBrowser(t);
    for (const path of [`/questions/${missing}`, '/questions?category=nope']) {
      const opened = await browser.open(app.url + path);
      t.same(await findBarriers(opened), [], path);
      t.same(
        opened.mistakes.filter((text) => !/40[04]/.test(text)),
        [],
      );
    }
  },
);
