import { makeHuman } from '../help/story.js';
import { t } from '../help/tap.js';
import { batch_path, namesOf, openFleets } from './fleet.js';
import type { Any } from './world.js';

/** Many agents of one person, registered in one call. Each is accepted or refused separately. */

const { app, register, meOf, start } = await openFleets(t);

const listOf = async ({ token }: { readonly token: string }): Promise<Any> =>
  (await app.call('GET', '/api/me/agents?limit=100', { token })).body;

t.test('a hundred agents are registered, linked, and shown their key once', async (t) => {
  const human = await makeHuman(app);
  const items = namesOf(100);
  const { status, body } = await register(human, items);
  t.match({ status, body }, { status: 200, body: { registered: 100, refused: 0 } });
  const results: Any[] = body.results;
  t.same(
    results.map(({ index, result }) => [index, result.user.name]),
    items.map(({ name }, index) => [index, name]),
  );
  const keys = new Set(results.map(({ result }) => result.api_key));
  t.equal(keys.size, 100);
  for (const { status, result } of results) {
    t.equal(status, 201);
    t.match(result, { linked: true, api_key: /^sk_[0-9A-Za-z]{49}$/, user: { points: 5_000 } });
    t.equal(result.user.trust_label, 'verified');
  }
  for (const n of [0, 49, 99]) {
    t.match(await meOf(results[n].result.api_key), {
      name: items[n]?.['name'],
      owner_linked: true,
    });
  }
  const list = await listOf(human);
  t.equal(list.total, 100);
  t.notMatch(JSON.stringify(list), /sk_[0-9A-Za-z]{49}/);
  const [sums] = await app.sql`
    select count(*)::int as agents, sum(balance)::int as points from accounts
    where agent_id = any (${results.map(({ result }) => result.user.id)}::uuid[])`;
  t.same({ ...sums }, { agents: 100, points: 500_000 });
});

/** Items of one call, and the error code for each item, or '' if it is registered. */
const judged: readonly (readonly [what: string, items: readonly unknown[], codes: string[]])[] = [
  ['one agent', [{ name: 'Solo', model: 'openai/gpt-4o' }], ['']],
  ['unknown members', [{ name: 'Unknown members', model: 'm', foo: 1 }], ['']],
  [
    'a name that is taken, in other letters',
    [
      { name: 'New A', model: 'm' },
      { name: 'solo', model: 'm' },
      { name: 'New B', model: 'm' },
    ],
    ['', 'DUPLICATE_NAME', ''],
  ],
  [
    'one name three times',
    ['Echo', 'ECHO', ' Echo ', 'Other'].map((name) => ({ name, model: 'm' })),
    ['', 'DUPLICATE_NAME', 'DUPLICATE_NAME', ''],
  ],
  [
    'one name in two forms of Unicode',
    ['B\u00e4r Eins', 'Ba\u0308r Eins'].map((name) => ({ name, model: 'm' })),
    ['', 'DUPLICATE_NAME'],
  ],
  [
    'items that are wrong',
    [
      { name: 'Right', model: 'm' },
      { name: 'Without model' },
      { name: 'x', model: 'm' },
      { name: 'Pirate', model: 'm', persona_archetype: 'pirate' },
      { name: 'y'.repeat(51), model: 'm' },
      null,
      { name: 'Two roles', model: 'm', role: 'predictor,guardian' },
    ],
    ['', 'MODEL_REQUIRED', ...Array(4).fill('INVALID_REQUEST'), ''],
  ],
  [
    'items that are no objects',
    [7, 'text', [], true],
    Array(4).fill('INVALID_REQUEST') as string[],
  ],
  [
    'names that show nothing or too much',
    ['a\u200bb', ' ', '\u202etxt', 'Ze'].map((name) => ({ name, model: 'm' })),
    ['INVALID_REQUEST', 'INVALID_REQUEST', 'INVALID_REQUEST', ''],
  ],
  ['a role that is none', [{ name: 'King', model: 'm', role: 'king' }], ['INVALID_REQUEST']],
  ['a blank model', [{ name: 'Blank', model: ' ' }], ['MODEL_REQUIRED']],
  [
    'the name of an item that is refused',
    [
      { name: 'Heir', model: 'm', referral_code: 'NOPE' },
      { name: 'Heir', model: 'm' },
    ],
    ['INVALID_REFERRAL_CODE', ''],
  ],
];

t.test('each item is judged by itself', async (t) => {
  const human = await makeHuman(app);
  let total = 0;
  for (const [what, items, codes] of judged) {
    const { status, body } = await register(human, items);
    t.equal(status, 200, what);
    t.same(
      body.results.map(({ code = '' }: Any) => code),
      codes,
      what,
    );
    total += codes.filter((code) => code === '').length;
    const refused = codes.filter((code) => code !== '').length;
    t.match(body, { registered: codes.length - refused, refused }, what);
    for (const [index, one] of body.results.entries()) {
      t.equal(one.index, index);
      if (codes[index] === '') continue;
      t.type(one.error, 'string');
      t.equal(one.result, undefined);
      if (codes[index] === 'INVALID_REQUEST') t.match(one.fields[0].path, /^body/, what);
    }
    t.equal((await listOf(human)).total, total, what);
  }
});

t.test('a body that is no list of 1 to 100 is refused as a whole', async (t) => {
  const human = await makeHuman(app);
  for (const agents of [[], namesOf(101), undefined, { name: 'One' }, 'Fleet', null, 7]) {
    const refused = await register(human, agents);
    t.match(refused, {
      status: 400,
      body: { code: 'INVALID_REQUEST', fields: [{ path: 'body.agents' }] },
    });
  }
  const large = await register(human, [{ name: 'Large', model: 'm', note: 'x'.repeat(2 ** 20) }]);
  t.match(large, { status: 413, body: { code: 'BODY_TOO_LARGE' } });
  t.equal((await listOf(human)).total, 0);
});

t.test('only a verified person registers a fleet', async (t) => {
  const { human, fleet } = await start(1);
  const key = fleet[0]?.key ?? '';
  const unverified = await makeHuman(app);
  await app.sql`update humans set email_verified_at = null where email = ${unverified.email}`;
  const agents = namesOf(2);
  for (const [credentials, status, code] of [
    [{ token: unverified.token }, 403, 'EMAIL_NOT_VERIFIED'],
    [{ key }, 403, 'HUMANS_ONLY'],
    [{}, 401, 'MISSING_AUTH'],
    [{ token: key }, 401, 'INVALID_TOKEN'],
    [{ token: human.token, key }, 400, 'AMBIGUOUS_AUTH'],
  ] as const) {
    const refused = await app.call('POST', batch_path, { ...credentials, body: { agents } });
    t.match(refused, { status, body: { code } });
    t.equal(refused.body.results, undefined);
  }
  t.match(await register(human, agents), { body: { registered: 2 } });
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const other = await app.call(method, batch_path, { token: human.token });
    t.match(other, { status: 405, body: { code: 'METHOD_NOT_ALLOWED' } });
    t.match(other.headers.get('allow'), /POST/);
  }
});

t.test('a fleet is outside the limit of registrations per address', async (t) => {
  const human = await makeHuman(app);
  const headers = { 'x-forwarded-for': '10.9.8.7' };
  const alone = () => app.call('POST', '/api/register', { headers, body: namesOf(1)[0] });
  t.match(await register(human, namesOf(100), headers), { body: { registered: 100 } });
  for (let n = 0; n < 5; n += 1) t.equal((await alone()).status, 201);
  t.match(await register(human, namesOf(100), headers), { body: { registered: 100 } });
  const refused = await alone();
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED' } });
  t.match(refused.headers.get('retry-after'), /^[1-9]\d*$/);
});

t.test('a repeat with the same Idempotency-Key registers nothing and gives the keys', async (t) => {
  const human = await makeHuman(app);
  const items = namesOf(10);
  const headers = { 'idempotency-key': 'fleet-7d8a0f3e' };
  const first = await register(human, items, headers);
  const again = await register(human, items, headers);
  t.same(again.body, first.body);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  const other = await register(human, items.slice(1), headers);
  t.match(other, { status: 422, body: { code: 'IDEMPOTENCY_MISMATCH' } });
  const late = await register(human, items, { 'idempotency-key': 'fleet-other' });
  t.match(late, { status: 200, body: { registered: 0, refused: 10 } });
  t.ok(late.body.results.every(({ code }: Any) => code === 'DUPLICATE_NAME'));
  t.equal((await listOf(human)).total, 10);
});

t.test('equal calls at once make one fleet, whatever the order of its names', async (t) => {
  const human = await makeHuman(app);
  const items = namesOf(50);
  const orders = [items, items.toReversed(), items, items.toReversed()];
  const answers = await Promise.all(orders.map((agents) => register(human, agents)));
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  const results: Any[] = answers.flatMap(({ body }) => body.results);
  const won = results.filter(({ status }) => status === 201);
  t.equal(won.length, 50);
  t.ok(results.every(({ status, code }) => status === 201 || code === 'DUPLICATE_NAME'));
  t.equal((await listOf(human)).total, 50);
  t.equal((await meOf(won.at(-1).result.api_key)).owner_linked, true);
});

t.test('a hundred full profiles fit, and are stored as sent', async (t) => {
  const human = await makeHuman(app);
  const profile = {
    persona_archetype: 'contrarian',
    risk_profile: 'aggressive',
    role: 'predictor,debater',
    bio: '🐝'.repeat(500),
    domain_focus: '界'.repeat(500),
    philosophy: 'p'.repeat(280),
  };
  const { body } = await register(
    human,
    namesOf(100).map((item) => ({ ...item, ...profile })),
  );
  t.equal(body.registered, 100);
  const { role, ...stated } = profile;
  t.match(await meOf(body.results[99].result.api_key), { ...stated, roles: role.split(',') });
});

t.test('recruits of one owner pay nothing, those of others as if they came alone', async (t) => {
  const { human, fleet } = await start(1);
  const recruiter = fleet[0] as (typeof fleet)[number];
  const { referral_code } = await meOf(recruiter.key);
  const recruits = () => namesOf(3).map((item) => ({ ...item, referral_code }));
  t.match(await register(human, recruits()), { body: { registered: 3 } });
  t.equal((await meOf(recruiter.key)).points, 5_000);
  const other = await makeHuman(app);
  t.match(await register(other, recruits()), { body: { registered: 3 } });
  t.equal((await meOf(recruiter.key)).points, 5_000 + 200 + 300 + 300);
  const unknown = await register(human, [{ ...namesOf(1)[0], referral_code: 'NOPE' }]);
  t.match(unknown.body.results, [{ status: 400, code: 'INVALID_REFERRAL_CODE' }]);
});
