import { questionId, serveConsumers } from '../features/consumers/world.js';
import { pluck } from '../help/pluck.js';
import { openSse } from '../help/sse-client.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/**
 * A client that asks for a part of the log gets that part, or a refusal that names the bad word,
 * over every transport. A misspelt word, or a word from another service, never returns everything.
 */

const { app, log, as, take, ack, key, write } = await serveConsumers(t);
const [Q1, Q2] = [questionId(1), questionId(2)];
const agent_id = questionId(9);

const place = async (n: number, category: string, data: object) => {
  const event = 'prediction.placed';
  const timestamp = new Date().toISOString();
  const body = JSON.stringify({ event, data, timestamp });
  const [entry] = await log.write(1, { event, question_id: questionId(n), category, body });
  return entry?.offset ?? 0;
};
const gpt = { model_family: 'gpt', confidence: 90 };
const claude = { model_family: 'claude', confidence: 60 };
const placed = [
  await place(1, 'society', gpt),
  await place(1, 'society', claude),
  await place(2, 'technology', gpt),
  await place(2, 'technology', claude),
];
const update = async (n: number, category = 'society') =>
  (await log.write(1, { event: 'question.updated', question_id: questionId(n), category }))[0]
    ?.offset ?? 0;
const created = async (n: number, category = 'society') =>
  (await log.write(1, { event: 'question.created', question_id: questionId(n), category }))[0]
    ?.offset ?? 0;
const updates = [await update(1), await update(2, 'technology'), await update(1)];

const offsetsAt = async (path: string) => {
  const { status, body } = await app.call('GET', path);
  return status === 200 ? pluck(body.events, 'offset') : status;
};

/** Variants of filter names: from other services, from other routes of this one, or misspelt. */
const words = [
  ...['topcis', 'topics', 'tpoic', 'model_familys', 'model', 'model_name', 'modelfamily'],
  ...['question_id', 'question_ids_', 'questionIds', 'qeustion_ids', 'question-ids', 'category'],
  ...[
    'catagories',
    'categry',
    'event',
    'evnets',
    'events[]',
    'types',
    'type',
    'agent_id',
    'min_conf',
  ],
  ...[
    'min_confidense',
    'minConfidence',
    'filter',
    'filter[events]',
    'fitler',
    'Topic',
    'Model_Family',
  ],
  ...['since', 'from', 'offset', 'kind'],
];

t.test('a stream and a page refuse every word that they do not know, by its name', async (t) => {
  for (const word of words) {
    for (const path of ['/api/stream?topic=all', '/api/events?after=0']) {
      const answer = await app.call('GET', `${path}&${encodeURIComponent(word)}=${Q1}`);
      t.equal(answer.status, 400, `${path} ${word}`);
      t.match(answer.headers.get('content-type'), /^application\/json/);
      t.match(answer.body, { code: /^INVALID_/, fields: [{ path: `query.${word}` }] }, word);
      t.notMatch(answer.headers.get('cache-control') ?? '', /immutable|max-age=[1-9]/);
    }
  }
});

t.test('two unknown words are both named', async (t) => {
  const { body } = await app.call('GET', '/api/events?topcis=all&model_familys=gpt&question_id=1');
  const paths = ['query.topcis', 'query.model_familys', 'query.question_id'];
  t.same(pluck(body.fields, 'path'), paths);
});

t.test('posted members, lines and HEAD are refused too', async (t) => {
  const posts = [
    ['/api/events/query', { after: 0, topcis: ['all'] }, 'topcis'],
    ['/api/events/query', { filter: { model_familys: ['gpt'] } }, 'filter'],
    ['/api/stream/query', { question_id: Q1 }, 'question_id'],
    ['/api/stream/query', { agent_id }, 'agent_id'],
  ] as const;
  for (const [path, body, name] of posts) {
    const answer = await app.call('POST', path, { body });
    t.match(answer, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
  }
  const lines = { accept: 'application/x-ndjson' };
  for (const [query, headers] of [
    ['format=ndjson&', {}],
    ['', lines],
  ] as const) {
    const answer = await app.call('GET', `/api/events?${query}topcis=all`, { headers });
    t.match(answer, { status: 400, body: { fields: [{ path: 'query.topcis' }] } }, query);
  }
  const head = await app.call('HEAD', '/api/events?topcis=all');
  t.match(head, { status: 400, body: '' });
});

t.test('words that narrow nothing are ignored', async (t) => {
  const known = await offsetsAt(`/api/events?after=0&topic=question:${Q1}`);
  for (const more of ['_=1730000000000', 'utm_source=x', 'ref=mail', 'v=2', 'cache_buster=1']) {
    t.same(await offsetsAt(`/api/events?after=0&topic=question:${Q1}&${more}`), known, more);
    const stream = await app.call('GET', `/api/stream?topic=question:${Q1}&${more}`);
    t.equal(stream.status, 200, more);
  }
});

t.test('known words narrow, alone and together', async (t) => {
  const all =
    `topic=all&events=prediction.placed&question_ids=${Q1}` +
    '&categories=society&model_family=gpt&min_confidence=80&limit=10';
  const of_one = [placed[0], placed[1], updates[0], updates[2]];
  const rows: readonly [string, readonly unknown[]][] = [
    [all, [placed[0]]],
    ['topic=category:society&events=question.updated', [updates[0], updates[2]]],
    [`question_ids=${Q1}`, of_one],
    [`topic=question:${Q1},question:${Q2}&events=question.updated`, updates],
    ['min_confidence=80', [placed[0], placed[2]]],
  ];
  for (const [query, expected] of rows) {
    t.same(await offsetsAt(`/api/events?after=0&${query}`), expected, query);
    const stream = await openSse(t, `${app.url}/api/stream?after=0&${query}`);
    await until(`${query}: all have come`, () => stream.offsets().length >= expected.length);
    t.same(stream.offsets(), expected, query);
    stream.close();
  }
  const twice = `/api/events?after=0&events=question.updated&topic=question:${Q1}&topic=question:${Q2}`;
  const both = await offsetsAt(twice);
  t.ok(both === 400 || JSON.stringify(both) === JSON.stringify(updates), JSON.stringify(both));
});

t.test('a value that is not known is refused by its word', async (t) => {
  const values = [
    ['events', 'prediction.plcaed'],
    ['categories', 'sociaty'],
    ['model_family', 'gptt'],
    ['min_confidence', 'high'],
    ['min_confidence', '101'],
    ['min_confidence', '-1'],
    ['topic', 'question:notanid'],
    ['topic', 'everything'],
    ['events', ''],
    ['topic', ''],
    ['question_ids', ''],
  ] as const;
  for (const [name, value] of values) {
    for (const path of ['/api/stream', '/api/events']) {
      const { status, body } = await app.call('GET', `${path}?after=0&${name}=${value}`);
      t.equal(status, 400, `${path} ${name}=${value}`);
      t.ok(JSON.stringify(body).includes(name), `${name}=${value}: ${JSON.stringify(body)}`);
    }
  }
});

t.test('a socket refuses unknown words, in its filter and beside it', async (t) => {
  const client = await connect(t, app.port);
  const inside = ['model_familys', 'event', 'questions', 'category', 'minConfidence'];
  const beside = {
    question_ids: [Q1],
    events: ['question.created'],
    model_family: ['gpt'],
    filters: {},
    topic: `question:${Q1}`,
    topcis: ['x'],
    agent_id,
    since: '2026-01-01',
  };
  const frames = [
    ...inside.map((name) => [name, { filter: { [name]: ['gpt'] } }] as const),
    ...Object.entries(beside).map(([name, value]) => [name, { [name]: value }] as const),
    ['events', { filter: { events: [] } }] as const,
  ];
  for (const [name, more] of frames) {
    const answer = await client.subscribe(['all'], more);
    t.match(answer, { op: 'error', code: 'INVALID_FILTER' }, name);
    t.ok(JSON.stringify(answer).includes(name), name);
  }
  await update(3);
  t.match(await client.ask({ op: 'ping' }), { op: 'pong' });
  t.same(client.events(), [], 'nothing is subscribed');
});

t.test('a refused subscription leaves the others alone, and a known filter works', async (t) => {
  const client = await connect(t, app.port);
  t.match(await client.subscribe([`question:${questionId(4)}`], { comment: 'mine', v: 2 }), {
    op: 'subscribed',
  });
  await client.subscribe(['all'], { filter: { topcis: ['x'] } });
  const fourth = await update(4);
  await until('it has come', () => client.events().length > 0);
  t.same(client.offsets(), [fourth]);
  const filter = { events: ['question.updated'], question_ids: [Q1], categories: ['society'] };
  const narrow = await connect(t, app.port);
  t.match(await narrow.subscribe(['all'], { filter }), { op: 'subscribed' });
  await update(2, 'technology');
  const wanted = await update(1);
  await until('it has come', () => narrow.events().length > 0);
  t.same(narrow.offsets(), [wanted]);
});

t.test('a consumer refuses unknown words, and is neither created nor changed', async (t) => {
  const bodies: readonly [string, object][] = [
    ['topcis', { topcis: ['all'] }],
    ['filters', { topics: ['all'], filters: {} }],
    ['question_ids', { topics: ['all'], question_ids: [Q1] }],
    ['filter.question_id', { topics: ['all'], filter: { question_id: Q1 } }],
    ['filter.model_familys', { topics: ['all'], filter: { model_familys: ['gpt'] } }],
    ['filter.question_ids', { topics: ['all'], filter: { question_ids: [] } }],
    ['events', { topics: ['all'], events: ['question.created'] }],
    ['scope', { topics: ['all'], scope: 'mine' }],
    ['agent_id', { topics: ['all'], agent_id }],
  ];
  for (const [name, body] of bodies) {
    const answer = await as('PUT', '/n1', body);
    t.equal(answer.status, 400, name);
    t.ok(JSON.stringify(answer.body.fields).includes(name), JSON.stringify(answer.body));
  }
  t.equal((await as('GET', '/n1')).status, 404);
  t.same((await as('GET', '')).body.consumers, []);
  const old = { topics: [`question:${Q1}`], filter: { events: ['question.updated'] } };
  await as('PUT', '/n2', old);
  const refused = { topics: ['all'], filter: { evnets: ['question.created'] } };
  t.match(await as('PUT', '/n2', refused), { status: 400 });
  t.match((await as('GET', '/n2')).body, old);
  await update(2);
  const wanted = await update(1);
  t.same(pluck((await take('n2', 'w')).body.events, 'offset'), [wanted]);
});

t.test('a consumer with a full known filter works', async (t) => {
  const wanted = await created(5);
  await created(6);
  await update(5);
  const filter = {
    events: ['question.created'],
    categories: ['society'],
    question_ids: [questionId(5)],
  };
  const put = { topics: ['category:society'], filter, start: 'beginning', max_deliveries: 5 };
  t.equal((await as('PUT', '/n3', put)).status, 201);
  t.same(pluck((await take('n3', 'w', { limit: 100 })).body.events, 'offset'), [wanted]);
});

t.test('a take and a consume frame do not narrow what the consumer is for', async (t) => {
  await as('PUT', '/n4', { topics: [`question:${questionId(7)}`] });
  const [entry] = await write([7]);
  const client = await connect(t, app.port, { headers: { 'x-api-key': key } });
  const more = {
    topics: [`question:${Q1}`],
    filter: { events: ['question.created'] },
    question_ids: [Q1],
    start: 0,
    after: 0,
  };
  for (const [name, value] of Object.entries(more)) {
    const answer = await as('POST', '/n4/take', { member: 'w', [name]: value });
    t.match(answer, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
    const frame = { op: 'consume', consumer: 'n4', member: 'w', [name]: value };
    t.match(await client.ask(frame), { op: 'error', fields: [{ path: name }] }, name);
  }
  t.match((await as('GET', '/n4')).body, { lag: 1, members: [] });
  t.match(await client.ask({ op: 'ping' }), { op: 'pong' });
  t.notOk(client.frames.some(({ op }) => op === 'delivery' || op === 'consuming'));
  await take('n4', 'w', { note: 'of no effect' });
  t.equal((await ack('n4', 'w', [entry?.offset ?? 0])).status, 200);
});

t.test('a webhook refuses unknown words, and ignores what narrows nothing', async (t) => {
  const url = 'https://example.com/hook';
  const events = ['question.created', 'question.updated'];
  const post = (more: object) =>
    app.call('POST', '/api/webhooks', { key, body: { url, events, ...more } });
  const beside = ['scope', 'scope_question', 'topics', 'filters', 'question_ids', 'categories'];
  for (const name of [...beside, 'model_family', 'min_confidence', 'topcis', 'evnets', 'model']) {
    const answer = await post({ [name]: 'x' });
    t.match(answer, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
  }
  for (const name of ['model_familys', 'question_id', 'events']) {
    const answer = await post({ filter: { [name]: ['question.created'] } });
    t.match(answer, { status: 400, body: { fields: [{ path: `body.filter.${name}` }] } }, name);
  }
  t.same((await app.call('GET', '/api/webhooks', { key })).body, []);
  const extra = { description: 'mine', name: 'hook', format: 'json', agent_id, type: 'agent' };
  const made = await post({ ...extra, filter: { question_ids: [Q1] } });
  t.equal(made.status, 201);
  const path = `/api/webhooks/${made.body.webhook?.id ?? made.body.id}`;
  const shown = (await app.call('GET', path, { key })).body;
  for (const name of ['description', 'format', 'kind'])
    t.notMatch(JSON.stringify(shown), `"${name}"`);
  for (const [name, body] of [
    ['filters', { filters: { question_ids: [Q2] } }],
    ['filter.question_idss', { filter: { question_idss: [Q2] } }],
  ] as const) {
    const answer = await app.call('PATCH', path, { key, body });
    t.match(answer, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
  }
  t.same((await app.call('GET', path, { key })).body, shown);
});

t.test('calls, feeds and keys in the address', async (t) => {
  const client = await connect(t, app.port, { headers: { 'x-api-key': key } });
  const reply = await client.ask({ op: 'call', route: 'GET /api/events?after=0&topcis=all' });
  t.match(reply, { op: 'reply', status: 400, body: { fields: [{ path: 'query.topcis' }] } });
  t.equal((await app.call('GET', '/feed.xml?category=sociaty')).status, 400);
  t.equal((await app.call('GET', '/feed.xml?category=society')).status, 200);
  for (const path of ['/api/stream?topic=all&api_key=', '/api/events?after=0&token=']) {
    const answer = await app.call('GET', path + key);
    t.match(answer, { status: 400, body: { code: 'KEY_IN_QUERY' } }, path);
    t.notOk(JSON.stringify(answer.body).includes(key), 'it is not repeated');
  }
});
