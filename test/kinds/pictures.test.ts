import { SaxesParser } from 'saxes';
import { no_limits, startApp, type TestApp } from '../help/app.js';
import { openStores } from '../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Any, age, type Fields, placeOrThrow, revise } from './world.js';

/**
 * Pictures of charts as PNG. `app` and `other` are two processes of the same service. Each case was
 * written from the documentation alone.
 */

const stores = await openStores(t);
const public_url = 'https://forum.example';
const env = { ...no_limits, PUBLIC_URL: public_url, TRUSTED_PROXIES: '127.0.0.1/32' };
const app = await startApp(t, { env, stores });
const other = await startApp(t, { roles: ['api'], env, stores });
const limited = await startApp(t, { roles: ['api'], env: { ...env, LIMIT_PICTURES: '3' }, stores });
const human = await makeHuman(app);

interface Picture {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly etag: string;
}

interface Asked {
  readonly on?: TestApp;
  readonly method?: string;
  readonly from?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

const ask = async (
  path: string,
  { on = app, method = 'GET', from = '198.51.100.1', headers = {}, signal }: Asked = {},
): Promise<Picture> => {
  const answer = await fetch(on.url + path, {
    method,
    headers: { 'x-forwarded-for': from, ...headers },
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    status: answer.status,
    headers: answer.headers,
    bytes: Buffer.from(await answer.arrayBuffer()),
    etag: answer.headers.get('etag') ?? '',
  };
};

const png = (id: string, query = '', asked: Asked = {}): Promise<Picture> =>
  ask(`/api/questions/${id}/chart.png${query}`, asked);

/** Width and height of a complete PNG. Throws on anything else. */
const sizeOf = ({ status, bytes }: Pick<Picture, 'status' | 'bytes'>): string => {
  const is_png = bytes.toString('latin1', 0, 8) === '\x89PNG\r\n\x1a\n';
  const ends = bytes.toString('latin1', bytes.length - 8, bytes.length - 4) === 'IEND';
  if (!is_png || !ends) throw new Error(`${status}: no PNG: ${bytes.toString('latin1', 0, 200)}`);
  return `${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`;
};

const bodyOf = ({ bytes }: Picture): Any => JSON.parse(String(bytes));

const predict = async (id: string, stated: Fields) => {
  const agent = await makeAgent(app, { human });
  return { agent, placed: await placeOrThrow(app, agent, id, stated) };
};

const makeForecast = async (fields: Fields = {}): Promise<string> => {
  const id = await makeOpenQuestion(app, fields);
  await predict(id, { prediction: false, confidence: 80 });
  return id;
};

/** Waits until every process shows the same new picture. */
const untilNew = (
  what: string,
  id: string,
  before: string,
  apps = [app, other],
): Promise<Picture> =>
  until(
    what,
    async () => {
      const pictures = await Promise.all(apps.map((on) => png(id, '', { on })));
      const tags = new Set(pictures.map(({ etag }) => etag));
      return tags.size === 1 && !tags.has(before) && pictures[0];
    },
    5_000,
    50,
  );

const asAdmin = async (method: string, path: string, body: unknown = {}): Promise<Any> => {
  const answer = await app.call(method, path, { admin: true, body });
  if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
};

const known = await makeForecast();
for (let n = 0; n < 5; n += 1) await predict(known, { prediction: true, confidence: 60 + n });
const first = await until('the picture stands still', async () => {
  const [one, same] = [await png(known), await png(known, '', { on: other })];
  return one.etag === same.etag && one;
});

/* The same state gives the same picture. */

t.test('every process gives the same bytes and ETag, again and again', async (t) => {
  t.equal(first.headers.get('content-type'), 'image/png');
  t.equal(sizeOf(first), '1600x900');
  for (let n = 0; n < 5; n += 1) {
    for (const on of [app, other]) {
      const { bytes, etag, status } = await png(known, '', { on });
      t.match({ status, etag }, { status: 200, etag: first.etag });
      t.ok(bytes.equals(first.bytes));
    }
  }
});

t.test('so does a process that starts later', async (t) => {
  const later = await startApp(t, { roles: ['api'], env, stores });
  const { bytes, etag } = await png(known, '', { on: later });
  t.equal(etag, first.etag);
  t.ok(bytes.equals(first.bytes));
  await later.stop();
});

t.test('a forecast makes a new picture, in every process', async (t) => {
  const id = await makeForecast();
  const before = await until('all have it', async () => {
    const [one, same] = [await png(id), await png(id, '', { on: other })];
    return one.etag === same.etag && one;
  });
  await predict(id, { prediction: true, confidence: 95 });
  const after = await untilNew('the new picture', id, before.etag);
  t.notOk(after.bytes.equals(before.bytes));
  const headers = { 'if-none-match': before.etag };
  for (let n = 0; n < 20; n += 1) {
    const on = n % 2 === 0 ? app : other;
    t.match(await png(id, '', { on, headers }), { status: 200, etag: after.etag });
  }
});

t.test('a revision, the outcome, its correction and its end each make another', async (t) => {
  const id = await makeOpenQuestion(app);
  const { agent, placed } = await predict(id, { prediction: true, confidence: 70 });
  const seen = new Map<string, Buffer>();
  let last = '';
  const look = async (what: string): Promise<void> => {
    const { etag, bytes } = await untilNew(what, id, last);
    t.notOk(seen.has(etag), what);
    seen.set(etag, bytes);
    last = etag;
  };
  await look('the first');
  await age(app, placed.id);
  await revise(app, agent, placed.id, { prediction: true, confidence: 90 });
  await look('the revision');
  const path = `/api/admin/questions/${id}`;
  await asAdmin('POST', `${path}/close`);
  await asAdmin('POST', `${path}/resolve`, { outcome: true, resolution_note: 'As reported.' });
  await look('the outcome');
  await asAdmin('POST', `${path}/resolve`, { outcome: false, resolution_note: 'As corrected.' });
  await look('the correction');
  await asAdmin('POST', `${path}/void`, { reason: 'It could not be decided.' });
  await look('the end without an outcome');
  t.equal(new Set([...seen.values()].map((bytes) => bytes.toString('base64'))).size, seen.size);
});

t.test('forecasts on another question change nothing', async (t) => {
  const busy = await makeForecast();
  const before = await png(busy);
  for (let n = 0; n < 3; n += 1) await predict(busy, { prediction: true, confidence: 50 + n });
  await untilNew('the busy one moves', busy, before.etag);
  const headers = { 'if-none-match': first.etag };
  t.equal((await png(known, '', { headers })).status, 304);
  t.ok((await png(known)).bytes.equals(first.bytes));
});

t.test('while forecasts come, an ETag goes with its bytes, and the end is right', async (t) => {
  const id = await makeForecast();
  const agents = await Promise.all(Array.from({ length: 8 }, () => makeAgent(app, { human })));
  const by_tag = new Map<string, Buffer>();
  let is_over = false;
  const watch = async (on: TestApp): Promise<void> => {
    while (!is_over) {
      const { status, etag, bytes } = await png(id, '', { on });
      if (status !== 200) throw new Error(`${status} ${bytes}`);
      const same = by_tag.get(etag);
      if (same?.equals(bytes) === false) throw new Error(`${etag} has two pictures`);
      by_tag.set(etag, bytes);
    }
  };
  const watching = Promise.all([watch(app), watch(other)]);
  for (const [n, agent] of agents.entries()) {
    await placeOrThrow(app, agent, id, { prediction: true, confidence: 50 + 3 * n });
  }
  is_over = true;
  await watching;
  const fresh = await startApp(t, { roles: ['api'], env, stores });
  const last = await png(id, '', { on: fresh });
  await untilNew('the last one', id, '', [app, other, fresh]);
  t.ok((await png(id)).bytes.equals(last.bytes));
  await fresh.stop();
});

/* Other ways to request a picture. */

t.test('a picture that is known is not sent again', async (t) => {
  const dark = await png(known, '?theme=dark');
  for (const tag of [first.etag, first.etag.replace('W/', ''), `"x", ${first.etag}, "y"`, '*']) {
    const { status, etag, bytes } = await png(known, '', { headers: { 'if-none-match': tag } });
    t.match({ status, etag, length: bytes.length }, { status: 304, etag: first.etag, length: 0 });
  }
  for (const tag of ['"wrong"', dark.etag]) {
    t.equal((await png(known, '', { headers: { 'if-none-match': tag } })).status, 200);
  }
});

t.test('HEAD tells of the same picture, drawn or not', async (t) => {
  const names = ['etag', 'content-type', 'content-length', 'cache-control'];
  const headersOf = ({ headers }: Picture) => names.map((name) => headers.get(name));
  const cold = await png(known, '?width=333', { method: 'HEAD' });
  const got = await png(known, '?width=333');
  const warm = await png(known, '?width=333', { method: 'HEAD' });
  t.equal(cold.status, 200);
  t.same(headersOf(cold), headersOf(got));
  t.same(headersOf(warm), headersOf(got));
  t.equal(Number(got.headers.get('content-length')), got.bytes.length);
});

for (const headers of [
  { accept: 'image/webp,*/*' },
  { accept: 'text/html' },
  { accept: 'application/json' },
  { 'accept-encoding': 'gzip' },
  { 'accept-encoding': 'br' },
  { 'accept-encoding': 'gzip;q=0' },
  { range: 'bytes=0-99' },
  { origin: 'null' },
  { cookie: `session=${human.token}` },
  { cookie: `__Host-session=${human.token}` },
] as readonly Readonly<Record<string, string>>[]) {
  t.test(`the picture is the same with ${Object.entries(headers)[0]}`.slice(0, 70), async (t) => {
    const answer = await png(known, '', { headers });
    t.equal(answer.status, 200);
    t.ok(answer.bytes.equals(first.bytes));
    t.equal(answer.etag, first.etag);
    t.equal(answer.headers.get('content-type'), 'image/png');
    t.equal(answer.headers.get('content-encoding'), null);
    t.equal(answer.headers.get('access-control-allow-origin'), '*');
    t.equal(answer.headers.get('cross-origin-resource-policy'), 'cross-origin');
    t.equal(answer.headers.get('set-cookie'), null);
  });
}

t.test('a key changes nothing, unless it is none', async (t) => {
  const { key } = await makeAgent(app, { human });
  const keyed = await png(known, '', { headers: { 'x-api-key': key } });
  t.ok(keyed.bytes.equals(first.bytes));
  t.equal(keyed.etag, first.etag);
  const wrong = await png(known, '', { headers: { 'x-api-key': 'sk_wrong' } });
  t.match([wrong.status, bodyOf(wrong).code], [401, 'INVALID_API_KEY']);
  t.ok((await png(known)).bytes.equals(first.bytes));
});

t.test('without a theme it is light', async (t) => {
  const [light, dark, auto] = [
    await png(known, '?theme=light'),
    await png(known, '?theme=dark'),
    await png(known, '?theme=auto'),
  ];
  t.ok(light.bytes.equals(first.bytes));
  t.equal(light.etag, first.etag);
  t.notOk(dark.bytes.equals(first.bytes));
  t.not(dark.etag, first.etag);
  t.equal(sizeOf(auto), '1600x900');
});

for (const [width, size] of [
  ['320', '640x996'],
  ['640', '1280x932'],
  ['1200', '2400x1350'],
] as const) {
  t.test(`${width} units are ${size} pixels`, async (t) => {
    t.equal(sizeOf(await png(known, `?width=${width}`)), size);
  });
}

for (const width of ['319', '1201', '0', '-1', 'abc', '640.5']) {
  t.test(`a width of ${width} is refused by its name`, async (t) => {
    const answer = await png(known, `?width=${width}`);
    t.equal(answer.status, 400);
    const { code, fields } = bodyOf(answer);
    t.match({ code, path: fields[0].path }, { code: 'INVALID_REQUEST', path: 'query.width' });
  });
}

t.test('unknown members and another order draw nothing new', async (t) => {
  const dark = await png(known, '?width=640&theme=dark');
  for (const query of ['?theme=dark&width=640', '?x=1&width=640&theme=dark']) {
    const same = await png(known, query);
    t.equal(same.etag, dark.etag);
    t.ok(same.bytes.equals(dark.bytes));
  }
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => png(known, `?x=${n}`)));
  for (const one of answers) t.match(one, { status: 200, etag: first.etag });
});

/* Every kind of question. */

const shapes: readonly (readonly [name: string, fields: Fields, stated: Fields | null])[] = [
  ['without forecasts', {}, null],
  ['with one forecast', {}, { prediction: true, confidence: 55 }],
  ['of a number', { question_type: 'numeric', range: { min: 0, max: 900, unit: 'km' } }, null],
  [
    'of a date',
    { question_type: 'date', range: { min: '2027-01-01T00:00:00Z', max: '2028-01-01T00:00:00Z' } },
    null,
  ],
  [
    'of ten options',
    { question_type: 'multi', options: Array.from({ length: 10 }, (_, n) => `Choice ${n}`) },
    { selected_option: 'Choice 3', confidence: 60 },
  ],
];
for (const [name, fields, stated] of shapes) {
  t.test(`a question ${name} has a picture`, async (t) => {
    const id = await makeOpenQuestion(app, fields);
    if (stated !== null) await predict(id, stated);
    t.equal(sizeOf(await png(id)), '1600x900');
    await asAdmin('POST', `/api/admin/questions/${id}/void`, { reason: 'It was asked twice.' });
    t.equal(sizeOf(await png(id)), '1600x900', 'also when it is voided');
  });
}

for (const title of [
  `Will ${'W'.repeat(480)} be built?`,
  'Will 👩‍👩‍👧‍👦 and 🏳️‍🌈 be among the new emoji of the year?',
  'هل يفتح المتحف الجديد أبوابه قبل نهاية العام القادم؟',
  '明年之前会不会开放新的博物馆以及旁边的公园和图书馆？',
  'Will </text><script>alert(1)</script> be drawn as a text?',
  'Will &amp; <image href="file:///etc/passwd"/> be read from the disk?',
  'Will ]]> and <![CDATA[ end the picture before its time?',
]) {
  t.test(`a title is text: ${title.slice(0, 30)}`, async (t) => {
    const id = await makeForecast({ question: title });
    t.equal(sizeOf(await png(id)), '1600x900');
    const svg = String((await ask(`/api/questions/${id}/chart.svg`)).bytes);
    const names = new Set<string>();
    const parser = new SaxesParser({ xmlns: true });
    parser.on('error', (error) => {
      throw error;
    });
    parser.on('opentag', ({ name }) => names.add(name));
    parser.write(svg).close();
    t.notOk(names.has('script') || names.has('image'));
  });
}

t.test('a draft is to others as what is not there, until it is published', async (t) => {
  const draft = await makeOpenQuestion(app, { publish: false });
  const seen = new Set<string>();
  for (const id of [draft, '00000000-0000-7000-8000-000000000000', 'nope']) {
    for (const headers of [{}, { 'if-none-match': '*' }]) {
      const answer = await png(id, '', { headers });
      t.equal(answer.status, 404);
      seen.add(JSON.stringify({ ...bodyOf(answer), request_id: '' }));
    }
  }
  t.equal(seen.size, 1);
  t.match([...seen][0], 'QUESTION_NOT_FOUND');
  await asAdmin('POST', `/api/admin/questions/${draft}/publish`);
  t.equal((await png(draft)).status, 200);
});

/* Pictures on other sites. */

t.test('the picture that a page names for others is there, and moves', async (t) => {
  const id = await makeForecast();
  const read = async () => {
    const html = String((await ask(`/questions/${id}`)).bytes);
    const of = (name: string) =>
      new RegExp(`property="og:${name}" content="([^"]*)"`).exec(html)?.[1];
    return { image: of('image') ?? '', size: `${of('image:width')}x${of('image:height')}` };
  };
  const { image, size } = await read();
  t.ok(image.startsWith(`${public_url}/`), image);
  const path = image.slice(public_url.length);
  const before = await ask(path, { headers: { accept: '*/*' } });
  t.equal(sizeOf(before), size);
  t.equal((await ask(path, { method: 'HEAD' })).headers.get('content-type'), 'image/png');
  await predict(id, { prediction: true, confidence: 97 });
  await until('it moves', async () => (await ask(path)).etag !== before.etag, 5_000);
});

t.test('oEmbed names a picture of the size that it says, or none', async (t) => {
  const url = encodeURIComponent(`${public_url}/questions/${known}`);
  const read = async (room: string) => bodyOf(await ask(`/oembed?url=${url}&${room}`));
  const { thumbnail_url, thumbnail_width, thumbnail_height } = await read(
    'maxwidth=800&maxheight=1000',
  );
  const picture = await ask(thumbnail_url.slice(public_url.length));
  t.equal(sizeOf(picture), `${thumbnail_width}x${thumbnail_height}`);
  t.ok(thumbnail_width <= 800 && thumbnail_height <= 1_000);
  for (const room of ['maxwidth=100', 'maxwidth=500&maxheight=300', 'maxheight=50']) {
    const names = Object.keys(await read(room)).filter((name) => name.startsWith('thumbnail'));
    t.same(names, [], room);
  }
});

/* Limits. */

const leftOf = async (from: string): Promise<Readonly<Record<string, number>>> => {
  const { limits } = bodyOf(await ask('/api/limits', { on: limited, from }));
  return Object.fromEntries(limits.map(({ name, left }: Any) => [name, left]));
};

t.test('an address has so many drawings, and what is kept costs none', async (t) => {
  const from = '192.0.2.1';
  const answers: Picture[] = [];
  for (let n = 0; n < 5; n += 1) {
    answers.push(await png(known, `?width=${400 + n}`, { on: limited, from }));
  }
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 429, 429],
  );
  for (const refused of answers.slice(3)) {
    const seconds = Number(refused.headers.get('retry-after'));
    t.ok(seconds >= 1);
    const { code, error } = bodyOf(refused);
    t.equal(code, 'RATE_LIMITED');
    t.match(error, new RegExp(`\\b${seconds} s`));
  }
  const asked = { on: limited, from };
  t.equal((await png(known, '?width=402', asked)).status, 200, 'a kept one');
  t.equal((await png(known, '?width=407', { on: limited, from: '192.0.2.2' })).status, 200);
});

t.test('what is known or kept costs nothing', async (t) => {
  const from = '192.0.2.3';
  const { etag } = await png(known, '?width=410', { on: limited, from });
  const before = await leftOf(from);
  for (let n = 0; n < 20; n += 1) {
    const headers = { 'if-none-match': n % 2 === 0 ? etag : `"guess ${n}"` };
    const { status } = await png(known, '?width=410', { on: limited, from, headers });
    t.equal(status, n % 2 === 0 ? 304 : 200);
  }
  // A cached copy lasts for a second, so at most one caller had to wait for a new one.
  t.ok(Number((await leftOf(from))['pictures']) >= Number(before['pictures']) - 1);
});

t.test('a header that nobody may send makes no further address', async (t) => {
  const direct = await startApp(t, {
    roles: ['api'],
    stores: await openStores(t),
    env: { ...no_limits, LIMIT_PICTURES: '2' },
  });
  const id = await makeOpenQuestion(direct);
  const statuses: number[] = [];
  for (let n = 0; n < 4; n += 1) {
    const asked = { on: direct, from: `203.0.113.${n}` };
    statuses.push((await png(id, `?width=${500 + n}`, asked)).status);
  }
  t.same(statuses, [200, 200, 429, 429]);
  await direct.stop();
});

let width = 820;
/** A crowd requests four pictures, then another client one. `place` counts pictures before it. */
const placeBehind = async (clientOf: (n: number) => string, other_client: string) => {
  const drawn: string[] = [];
  const draw = async (from: string, name: string): Promise<number> => {
    width += 1;
    const { status } = await png(known, `?width=${width}`, { from });
    if (status === 200) drawn.push(name);
    return status;
  };
  const crowd = Array.from({ length: 4 }, (_, n) => draw(clientOf(n), 'the crowd'));
  const status = await draw(other_client, 'the other');
  const statuses = await Promise.all(crowd);
  return { status, place: drawn.indexOf('the other'), statuses };
};

t.test('one client cannot keep another waiting for its many pictures', async (t) => {
  const { status, place, statuses } = await placeBehind(() => '192.0.2.11', '192.0.2.12');
  t.equal(status, 200);
  t.ok(place <= 2, `after ${place} others`);
  t.ok(statuses.every((one) => one === 200 || one === 503));
});

t.test('the many addresses of an IPv6 network are one client', async (t) => {
  const of = (n: number): string => `2001:db8:1:2::${n.toString(16)}`;
  const { status, place } = await placeBehind(of, '2001:db8:1:3::1');
  t.equal(status, 200);
  t.ok(place <= 2, `after ${place} others`);
});

t.test('fifty who ask for the same new picture all get it', async (t) => {
  const id = await makeForecast();
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => png(id, '?width=700', { from: `198.18.1.${n}` })),
  );
  t.same([...new Set(answers.map(({ status }) => status))], [200]);
  t.equal(new Set(answers.map(({ etag }) => etag)).size, 1);
});

t.test('clients that go away keep nobody waiting', async (t) => {
  const gone = new AbortController();
  const left = Array.from({ length: 10 }, (_, n) =>
    png(known, `?width=${900 + n}`, { from: '192.0.2.21', signal: gone.signal }).catch(() => null),
  );
  await until('one is drawn or refused', () => Promise.race(left));
  gone.abort();
  const answer = await png(known, '?width=950', { from: '192.0.2.22' });
  t.equal(sizeOf(answer), '1900x1068');
  await Promise.all(left);
});
