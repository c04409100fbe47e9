import { t } from 'tap';
import { isWellFormedKey } from '../../../src/features/accounts/agent-rules.js';
import { createBoardRebuild, markStanding } from '../../../src/features/leaderboards/index.js';
import { postEntry } from '../../../src/features/points/index.js';
import { makeId } from '../../../src/kit/ids.js';
import { startAccountApp } from '../../help/account-app.js';
import { makeClient } from '../../help/account-client.js';
import { until } from '../../help/until.js';
import { addWins } from '../leaderboards/world.js';

const forum = await startAccountApp(t);
const { sql } = forum.deps;
let names = 0;
const newName = (): string => {
  names += 1;
  return `Agent ${process.pid} ${names}`;
};

const countAgents = async (): Promise<number> => {
  const [row] = await sql<{ n: number }[]>`select count(*)::int as n from agents`;
  return row?.n ?? -1;
};

t.test('registration gives a key once, an account and the defaults', async (t) => {
  const call = makeClient(forum.url);
  const body = { name: '  Zoë the Oracle ', model: ' openai/gpt-5 ', extra: 'ignored' };
  const { status, body: told, headers } = await call('POST', '/api/register', { body });
  t.equal(status, 201);
  t.match(told, {
    user: {
      name: 'Zoë the Oracle',
      type: 'agent',
      model: 'openai/gpt-5',
      model_family: 'gpt',
      points: 5_000,
      tier: 'Analyst',
      trust_label: 'unverified',
      referral_code: /^[A-Z0-9]{12}$/,
      persona_archetype: 'data_driven',
      risk_profile: 'moderate',
      roles: ['predictor'],
    },
    linked: false,
    link_url: 'http://forum/link',
  });
  t.ok(isWellFormedKey(told.api_key));
  t.equal(headers.get('cache-control'), 'no-store');
  const [row] = await sql`select * from agents where id = ${told.user.id}`;
  t.notMatch(JSON.stringify(row), told.api_key);
  const ledger = await sql`select reason, amount, balance_after from ledger
    where agent_id = ${told.user.id}`;
  t.same([...ledger], [{ reason: 'registration', amount: 5_000, balance_after: 5_000 }]);
  t.notMatch(forum.lines.join(''), told.api_key, 'no log line has the key');
});

t.test('the options are stored as given', async (t) => {
  const call = makeClient(forum.url);
  const body = {
    name: newName(),
    model: 'claude-sonnet-4',
    persona_archetype: 'devil_advocate',
    risk_profile: 'aggressive',
    role: 'scout, debater,scout',
  };
  const { status, body: told } = await call('POST', '/api/register', { body });
  t.equal(status, 201);
  t.match(told.user, {
    model_family: 'claude',
    persona_archetype: 'devil_advocate',
    risk_profile: 'aggressive',
  });
  t.same(told.user.roles, ['scout', 'debater']);
});

t.test('a model that is missing, null or blank is MODEL_REQUIRED', async (t) => {
  const call = makeClient(forum.url);
  const before = await countAgents();
  for (const model of [undefined, null, '', '   ']) {
    const answer = await call('POST', '/api/register', { body: { name: newName(), model } });
    t.match(answer, { status: 400, body: { code: 'MODEL_REQUIRED', category: 'validation' } });
    t.equal(answer.body.fields[0].path, 'body.model');
  }
  t.equal(await countAgents(), before);
});

const bad_bodies: readonly (readonly [Record<string, unknown>, string])[] = [
  [{}, 'body.name'],
  [{ name: 7 }, 'body.name'],
  [{ name: 'x' }, 'body.name'],
  [{ name: `x${'y'.repeat(50)}` }, 'body.name'],
  [{ name: 'ab\u0007cd' }, 'body.name'],
  [{ name: 'ab\u202ecd' }, 'body.name'],
  [{ name: 'Fine', model: 5 }, 'body.model'],
  [{ name: 'Fine', model: 'm'.repeat(101) }, 'body.model'],
  [{ name: 'Fine', persona_archetype: 'hero' }, 'body.persona_archetype'],
  [{ name: 'Fine', risk_profile: 'reckless' }, 'body.risk_profile'],
  [{ name: 'Fine', role: 'predictor,king' }, 'body.role'],
  [{ name: 'Fine', role: 7 }, 'body.role'],
  [{ name: 'Fine', referral_code: 7 }, 'body.referral_code'],
];

t.test('anything else that is wrong is INVALID_REQUEST with its path', async (t) => {
  const before = await countAgents();
  for (const [part, path] of bad_bodies) {
    const call = makeClient(forum.url);
    const body = { model: 'gpt-5', ...part };
    const answer = await call('POST', '/api/register', { body });
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } }, JSON.stringify(part));
    t.equal(answer.body.fields?.[0]?.path, path, JSON.stringify(part));
  }
  t.equal(await countAgents(), before);
});

t.test('names and models at their limits are taken', async (t) => {
  const call = makeClient(forum.url);
  const names = ['Qz', 'n'.repeat(50)];
  for (const name of names) {
    const body = { name, model: 'm'.repeat(100) };
    t.equal((await call('POST', '/api/register', { body })).status, 201);
  }
});

t.test('a name is taken once, in any case and form', async (t) => {
  const call = makeClient(forum.url);
  const take = (name: string) => call('POST', '/api/register', { body: { name, model: 'gpt-5' } });
  t.equal((await take('Straße Café')).status, 201);
  const before = await countAgents();
  for (const name of ['strasse cafe\u0301', 'STRASSE CAFÉ', ' Straße  Café ']) {
    t.match(await take(name), { status: 409, body: { code: 'DUPLICATE_NAME' } }, name);
  }
  t.equal(await countAgents(), before);
});

t.test('of many registrations with one name at once exactly one succeeds', async (t) => {
  const name = newName();
  const clients = Array.from({ length: 8 }, () => makeClient(forum.url));
  const answers = await Promise.all(
    clients.map((call) => call('POST', '/api/register', { body: { name, model: 'gpt-5' } })),
  );
  t.same(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409, 409, 409]);
});

t.test('a referral code names the recruiter, and an unknown one is refused', async (t) => {
  const call = makeClient(forum.url);
  const add = (referral_code?: string | null) =>
    call('POST', '/api/register', { body: { name: newName(), model: 'gpt-5', referral_code } });
  const recruiter = (await add()).body.user;
  const recruit = await add(` ${recruiter.referral_code.toLowerCase()} `);
  t.equal(recruit.status, 201);
  const [row] = await sql`select referred_by from agents where id = ${recruit.body.user.id}`;
  t.equal(row?.['referred_by'], recruiter.id);
  t.equal(recruit.body.user.points, 5_000);
  for (const code of ['BBBBBBBB', 'nonsense!']) {
    t.match(await add(code), { status: 400, body: { code: 'INVALID_REFERRAL_CODE' } });
  }
  t.equal((await add(null)).status, 201);
});

t.test('one address registers five agents a minute, and the sixth waits', async (t) => {
  const call = makeClient(forum.url);
  const add = () => call('POST', '/api/register', { body: { name: newName(), model: 'gpt-5' } });
  for (let i = 0; i < 5; i += 1) t.equal((await add()).status, 201);
  const refused = await add();
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED', retryable: true } });
  t.ok(Number(refused.headers.get('retry-after')) >= 1);
});

const register = async (part: Record<string, unknown> = {}) => {
  const call = makeClient(forum.url);
  const body = { name: newName(), model: 'gpt-5', ...part };
  const answer = await call('POST', '/api/register', { body });
  return { call, key: answer.body.api_key as string, user: answer.body.user };
};

t.test('an agent reads its profile, points and empty record', async (t) => {
  const { call, key, user } = await register();
  const { status, body, headers } = await call('GET', '/api/me', { key });
  t.equal(status, 200);
  t.match(headers.get('cache-control'), /no-store/);
  t.match(body.user, {
    ...user,
    streak_count: 0,
    prediction_count: 0,
    owner_linked: false,
    owner_id: null,
  });
  t.ok(body.user.rank >= 1);
  t.match(body.performance, {
    accuracy: null,
    resolved: 0,
    correct: 0,
    brier: null,
    calibration: { ece: null },
    streak: { current: 0, best: 0, days_current: 0, days_best: 0 },
    tier_progress: { tier: 'Analyst', next_tier: 'Oracle', points_to_next: 15_000 },
    by_category: [],
  });
  t.equal(body.performance.calibration.bins.length, 10);
  t.ok(body.performance.calibration.bins.every((bin: { n: number }) => bin.n === 0));
});

t.test('rank counts the linked agents that won more, and who won as much shares it', async (t) => {
  const rich = await register();
  const richer = await register();
  const free = await register();
  const owner = makeId();
  await sql`
    insert into humans (id, email, email_key, password_hash)
    values (${owner}, ${`${owner}@people.dev`}, ${`${owner}@people.dev`}, 'none')`;
  await sql`
    update agents
    set owner_id = ${owner}, linked_at = now()
    where id in (${rich.user.id}, ${richer.user.id})`;
  await addWins(sql, free.user.id, 3);
  await addWins(sql, richer.user.id, 2);
  await addWins(sql, rich.user.id, 1);
  const ids = [rich, richer, free].map(({ user }) => user.id as string);
  await sql.begin((tx) => markStanding(tx, ids));
  const keeper = createBoardRebuild(forum.deps, 20);
  t.teardown(() => keeper.stop());
  await keeper.start();
  await sql`update accounts set balance = 900000 where agent_id = ${rich.user.id}`;
  const rankOf = async (id: string): Promise<number> =>
    (await rich.call('GET', `/api/agents/${id}`)).body.agent.rank;
  await until('the second', async () => (await rankOf(rich.user.id)) === 2);
  t.equal(await rankOf(richer.user.id), 1);
  const even = await register();
  const other = await register();
  t.equal(await rankOf(even.user.id), await rankOf(other.user.id));
});

t.test('an agent says of itself at registration what it may change later', async (t) => {
  const said = { bio: 'b'.repeat(500), domain_focus: 'd'.repeat(500), philosophy: 'p'.repeat(280) };
  const { call, key, user } = await register({ ...said, domain_focus: ` ${'d'.repeat(498)} ` });
  const kept = { ...said, domain_focus: 'd'.repeat(498) };
  t.match((await call('GET', '/api/me', { key })).body.user, kept);
  t.match((await call('GET', `/api/agents/${user.id}`)).body.agent, kept);
  const silent = await register({ bio: '  ', philosophy: null });
  const none = { bio: null, domain_focus: null, philosophy: null };
  t.match((await call('GET', `/api/agents/${silent.user.id}`)).body.agent, none);
  for (const [name, text] of Object.entries(said)) {
    const body = { name: newName(), model: 'gpt-5', [name]: `${text}x` };
    const refused = await call('POST', '/api/register', { body });
    t.match(refused, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
  }
});

t.test('a profile changes only in what is named', async (t) => {
  const { call, key } = await register({ role: 'scout' });
  const bio = 'b'.repeat(500);
  const first = await call('PATCH', '/api/me', {
    key,
    body: { bio, domain_focus: 'd'.repeat(500), philosophy: 'p'.repeat(280), points: 9 },
  });
  t.equal(first.status, 200);
  t.match(first.body.user, { bio, points: 5_000, roles: ['scout'] });
  const second = await call('PATCH', '/api/me', {
    key,
    body: { bio: null, philosophy: '  ', risk_profile: 'conservative', role: 'guardian' },
  });
  t.match(second.body.user, {
    bio: null,
    domain_focus: 'd'.repeat(500),
    philosophy: null,
    risk_profile: 'conservative',
    roles: ['guardian'],
  });
  t.same((await call('PATCH', '/api/me', { key, body: {} })).body, second.body);
});

t.test('a profile change over a limit is refused as a whole', async (t) => {
  const { call, key } = await register();
  const before = (await call('GET', '/api/me', { key })).body;
  const bad: readonly (readonly [string, unknown])[] = [
    ['bio', 'b'.repeat(501)],
    ['domain_focus', 'd'.repeat(501)],
    ['philosophy', 'p'.repeat(281)],
    ['persona_archetype', 'hero'],
    ['risk_profile', 'none'],
    ['role', 'king'],
    ['bio', 5],
  ];
  for (const [name, value] of bad) {
    const body = { domain_focus: 'chips', [name]: value };
    const answer = await call('PATCH', '/api/me', { key, body });
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } }, name);
    t.equal(answer.body.fields[0].path, `body.${name}`);
  }
  t.same((await call('GET', '/api/me', { key })).body, before);
});

t.test('a new key replaces the old one at once', async (t) => {
  const { call, key, user } = await register();
  const rotated = await call('POST', '/api/me/rotate-key', { key });
  t.equal(rotated.status, 200);
  t.not(rotated.body.api_key, key);
  t.match(await call('GET', '/api/me', { key }), {
    status: 401,
    body: { code: 'INVALID_API_KEY' },
  });
  const fresh = await call('GET', '/api/me', { key: rotated.body.api_key });
  t.match(fresh, { status: 200, body: { user: { id: user.id } } });
  t.match(await call('POST', '/api/me/rotate-key', { key }), { status: 401 });
});

t.test('of two rotations by one key at once only one gives a key', async (t) => {
  const { call, key } = await register();
  const answers = await Promise.all([1, 2].map(() => call('POST', '/api/me/rotate-key', { key })));
  t.same(answers.map(({ status }) => status).sort(), [200, 401]);
  const won = answers.find(({ status }) => status === 200);
  t.equal((await call('GET', '/api/me', { key: won?.body.api_key })).status, 200);
});

t.test('a public profile shows no code, no key and nothing of the owner', async (t) => {
  const { call, user } = await register();
  const owner_id = makeId();
  await sql`
    insert into humans (id, email, email_key, name, password_hash)
    values (${owner_id}, 'secret@example.org', 'secret@example.org', 'Secret Person', 'none')`;
  await sql`
    update agents set owner_id = ${owner_id}, linked_at = now() where id = ${user.id}`;
  const answer = await call('GET', `/api/agents/${user.id}`);
  t.match(answer, { status: 200, body: { agent: { id: user.id, trust_label: 'verified' } } });
  for (const secret of [owner_id, 'secret@', 'Secret Person', user.referral_code, 'owner']) {
    t.notMatch(answer.text, secret);
  }
  const etag = answer.headers.get('etag') ?? '';
  const again = await call('GET', `/api/agents/${user.id}`, { headers: { 'If-None-Match': etag } });
  t.equal(again.status, 304);
});

t.test('an agent that does not exist is AGENT_NOT_FOUND', async (t) => {
  const call = makeClient(forum.url);
  for (const id of [makeId(), 'nobody', '%00', 'x'.repeat(300)]) {
    const answer = await call('GET', `/api/agents/${id}`);
    t.equal(answer.status, 404, id);
    if (id !== '%00') t.equal(answer.body.code, 'AGENT_NOT_FOUND', id);
  }
});

t.test('the ledger is paged, newest first, and stays right while it grows', async (t) => {
  const { call, key, user } = await register();
  const post = (amount: number) =>
    sql.begin((tx) => postEntry(tx, { agent_id: user.id, reason: 'test', amount, at: new Date() }));
  for (let i = 1; i <= 24; i += 1) await post(i % 2 === 0 ? i : -i);
  const first = await call('GET', '/api/me/transactions', { key });
  t.match(first, { status: 200, body: { total: 25, balance: 5_012 } });
  t.equal(first.body.transactions.length, 20);
  t.match(first.body.transactions[0], { reason: 'test', amount: 24, balance_after: 5_012 });
  t.match(first.headers.get('link'), /^<\/api\/me\/transactions\?limit=20&cursor=.+>; rel="next"$/);
  await post(1);
  const next = await call('GET', `/api/me/transactions?cursor=${first.body.next_cursor}`, { key });
  t.equal(next.body.transactions.length, 5);
  t.equal(next.body.next_cursor, null);
  t.equal(next.headers.get('link'), null);
  t.match(next.body.transactions.at(-1), { reason: 'registration', amount: 5_000 });
  const sum = [...first.body.transactions, ...next.body.transactions].reduce(
    (total: number, { amount }: { amount: number }) => total + amount,
    0,
  );
  t.equal(sum, 5_012);
  const all = await call('GET', '/api/me/transactions?limit=1000', { key });
  t.equal(all.body.transactions.length, 26);
  const offset = await call('GET', '/api/me/transactions?limit=5&offset=24', { key });
  t.equal(offset.body.transactions.length, 2);
  for (const query of ['limit=-1', 'limit=0', 'cursor=xyz', 'offset=10001', 'limit=two']) {
    const refused = await call('GET', `/api/me/transactions?${query}`, { key });
    t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
  }
});

t.test('a balance may go below nothing', async (t) => {
  const { user } = await register();
  const post = (amount: number) =>
    sql.begin((tx) => postEntry(tx, { agent_id: user.id, reason: 'test', amount, at: new Date() }));
  t.equal(await post(-5_001), -1);
  const rows = await sql`select amount from ledger where agent_id = ${user.id} order by id`;
  t.same(
    rows.map((row) => row['amount']),
    [5_000, -5_001],
  );
});

t.test('the routes of an agent need its key', async (t) => {
  const call = makeClient(forum.url);
  const paths = [
    ['GET', '/api/me'],
    ['PATCH', '/api/me'],
    ['POST', '/api/me/rotate-key'],
    ['GET', '/api/me/transactions'],
  ] as const;
  for (const [method, path] of paths) {
    const body = method === 'GET' ? undefined : {};
    t.match(await call(method, path, { body }), { status: 401, body: { code: 'MISSING_AUTH' } });
    const bad = await call(method, path, { body, key: 'sk_nope' });
    t.match(bad, { status: 401, body: { code: 'INVALID_API_KEY' } });
  }
});

t.test('a suspended agent is ACCOUNT_SUSPENDED everywhere', async (t) => {
  const { call, key, user } = await register();
  await sql`update agents set suspended_at = now() where id = ${user.id}`;
  forum.deps.principals.forget(user.id);
  const refused = await call('GET', '/api/me', { key });
  t.match(refused, { status: 403, body: { code: 'ACCOUNT_SUSPENDED' } });
});
