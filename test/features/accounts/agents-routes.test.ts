import { isWellFormedKey } from '../../../src/features/accounts/rules.js';
import { createBoardRebuild, markStanding } from '../../../src/features/leaderboards/index.js';
import { postEntry } from '../../../src/features/points/index.js';
import { makeId } from '../../../src/kit/ids.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { addWins } from '../leaderboards/world.js';
import { startAccounts } from './world.js';

const forum = await startAccounts(t);
const { sql } = forum.deps;
const { addAgent, addPerson, makeClient, newName } = forum;

/** Tries a registration that must fail, and checks that no agent is added. */
const refuseAgent = async (fields: Readonly<Record<string, unknown>>) => {
  const count = async () => (await sql`select count(*)::int as n from agents`)[0]?.['n'];
  const before = await count();
  const { answer } = await addAgent(fields);
  t.equal(await count(), before);
  return answer;
};

t.test('registration gives a key once, an account and the defaults', async (t) => {
  const fields = { name: '  Zoë the Oracle ', model: ' openai/gpt-5 ', extra: 'ignored' };
  const { answer, id, key } = await addAgent(fields);
  t.equal(answer.status, 201);
  t.match(answer.body, {
    user: {
      name: 'Zoë the Oracle',
      type: 'agent',
      model: 'openai/gpt-5',
      model_family: 'gpt',
      points: 5_000,
      tier: 'Analyst',
      trust_label: 'unverified',
      persona_archetype: 'data_driven',
      risk_profile: 'moderate',
      roles: ['predictor'],
      referral_code: /^[A-Z0-9]{12}$/,
    },
    linked: false,
    link_url: 'http://forum/link',
  });
  t.ok(isWellFormedKey(key));
  t.equal(answer.headers.get('cache-control'), 'no-store');
  const [row] = await sql`select * from agents where id = ${id}`;
  t.notMatch(JSON.stringify(row), key);
  const ledger = await sql`
    select reason, amount, balance_after from ledger where agent_id = ${id}`;
  t.same([...ledger], [{ reason: 'registration', amount: 5_000, balance_after: 5_000 }]);
  t.notMatch(forum.lines.join(''), key, 'no log line has the key');
});

t.test('the options are stored as given', async (t) => {
  const choices = { persona_archetype: 'devil_advocate', risk_profile: 'aggressive' };
  const { user } = await addAgent({ model: 'claude-4', role: 'scout, debater,scout', ...choices });
  t.match(user, { model_family: 'claude', ...choices });
  t.same(user.roles, ['scout', 'debater']);
});

t.test('a model that is missing, null or blank is MODEL_REQUIRED', async (t) => {
  for (const model of [undefined, null, '', '   ']) {
    const answer = await refuseAgent({ model });
    t.match(answer, { status: 400, body: { code: 'MODEL_REQUIRED', category: 'validation' } });
    t.equal(answer.body.fields[0].path, 'body.model');
  }
});

t.test('anything else that is wrong is INVALID_REQUEST with its path', async (t) => {
  const cases: readonly (readonly [string, unknown])[] = [
    ...[undefined, 7, 'x', `x${'y'.repeat(50)}`, 'ab\u0007cd', 'ab\u202ecd'].map(
      (name) => ['name', name] as const,
    ),
    ['model', 5],
    ['model', 'm'.repeat(101)],
    ['persona_archetype', 'hero'],
    ['risk_profile', 'reckless'],
    ['role', 'predictor,king'],
    ['role', 7],
    ['referral_code', 7],
    ['bio', 'b'.repeat(501)],
    ['domain_focus', 'd'.repeat(501)],
    ['philosophy', 'p'.repeat(281)],
  ];
  for (const [member, value] of cases) {
    const answer = await refuseAgent({ [member]: value });
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } }, `${member} ${value}`);
    t.equal(answer.body.fields?.[0]?.path, `body.${member}`, `${member} ${value}`);
  }
});

t.test('names and models at their limits are taken', async (t) => {
  for (const name of ['Qz', 'n'.repeat(50)]) {
    t.equal((await addAgent({ name, model: 'm'.repeat(100) })).answer.status, 201);
  }
});

t.test('a name is taken once, in any case and form, also of many at once', async (t) => {
  t.equal((await addAgent({ name: 'Straße Café' })).answer.status, 201);
  for (const name of ['strasse cafe\u0301', 'STRASSE CAFÉ', ' Straße  Café ']) {
    t.match(await refuseAgent({ name }), { status: 409, body: { code: 'DUPLICATE_NAME' } }, name);
  }
  const name = newName();
  const added = await Promise.all(Array.from({ length: 8 }, () => addAgent({ name })));
  t.same(added.map(({ answer }) => answer.status).sort(), [201, ...Array(7).fill(409)]);
});

t.test('a referral code names the recruiter, and an unknown one is refused', async (t) => {
  const recruiter = await addAgent({ referral_code: null });
  const referral_code = ` ${recruiter.user.referral_code.toLowerCase()} `;
  const recruit = await addAgent({ referral_code });
  const [row] = await sql`select referred_by from agents where id = ${recruit.id}`;
  t.equal(row?.['referred_by'], recruiter.id);
  t.equal(recruit.user.points, 5_000);
  for (const code of ['BBBBBBBB', 'nonsense!']) {
    const answer = await refuseAgent({ referral_code: code });
    t.match(answer, { status: 400, body: { code: 'INVALID_REFERRAL_CODE' } });
  }
});

t.test('one address registers five agents a minute, and the sixth waits', async (t) => {
  const call = makeClient();
  const add = () => call('POST', '/api/register', { body: { name: newName(), model: 'gpt-5' } });
  for (let i = 0; i < 5; i += 1) t.equal((await add()).status, 201);
  const refused = await add();
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED', retryable: true } });
  t.ok(Number(refused.headers.get('retry-after')) >= 1);
});

t.test('an agent reads its profile, points and empty record', async (t) => {
  const { call, key, user } = await addAgent();
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
    by_category: [],
    calibration: { ece: null },
    streak: { current: 0, best: 0, days_current: 0, days_best: 0 },
    tier_progress: { tier: 'Analyst', next_tier: 'Oracle', points_to_next: 15_000 },
  });
  const { bins } = body.performance.calibration;
  t.same(pluck(bins, 'n'), Array(10).fill(0));
});

t.test('rank counts the linked agents that won more, and equal agents share it', async (t) => {
  const { token } = await addPerson();
  const [rich, richer, free] = [
    await addAgent({}, token),
    await addAgent({}, token),
    await addAgent(),
  ];
  for (const [n, { id }] of [rich, richer, free].entries()) await addWins(sql, id, n + 1);
  await sql.begin((tx) => markStanding(tx, [rich.id, richer.id, free.id]));
  const rebuild = createBoardRebuild(forum.deps, 20);
  t.teardown(() => rebuild.stop());
  await rebuild.start();
  await sql`update accounts set balance = 900000 where agent_id = ${rich.id}`;
  const rankOf = async ({ id }: typeof rich): Promise<number> =>
    (await rich.call('GET', `/api/agents/${id}`)).body.agent.rank;
  await until('the second', async () => (await rankOf(rich)) === 2);
  t.equal(await rankOf(richer), 1);
  t.equal(await rankOf(await addAgent()), await rankOf(await addAgent()));
});

t.test('registration takes every text that a profile change takes', async (t) => {
  const said = { bio: 'b'.repeat(500), domain_focus: 'd'.repeat(500), philosophy: 'p'.repeat(280) };
  const { call, key, id } = await addAgent({ ...said, domain_focus: ` ${'d'.repeat(498)} ` });
  const kept = { ...said, domain_focus: 'd'.repeat(498) };
  t.match((await call('GET', '/api/me', { key })).body.user, kept);
  t.match((await call('GET', `/api/agents/${id}`)).body.agent, kept);
  const silent = await addAgent({ bio: '  ', philosophy: null });
  const none = { bio: null, domain_focus: null, philosophy: null };
  t.match((await call('GET', `/api/agents/${silent.id}`)).body.agent, none);
});

t.test('a profile change leaves other members as they are', async (t) => {
  const { call, key } = await addAgent({ role: 'scout' });
  const patch = (body: object) => call('PATCH', '/api/me', { key, body });
  const [bio, domain_focus] = ['b'.repeat(500), 'd'.repeat(500)];
  const first = await patch({ bio, domain_focus, philosophy: 'p'.repeat(280), points: 9 });
  t.equal(first.status, 200);
  t.match(first.body.user, { bio, points: 5_000, roles: ['scout'] });
  const changed = { bio: null, risk_profile: 'conservative' };
  const second = await patch({ ...changed, philosophy: '  ', role: 'guardian' });
  const roles = ['guardian'];
  t.match(second.body.user, { ...changed, domain_focus, philosophy: null, roles });
  t.same((await patch({})).body, second.body);
});

t.test('a profile change over a limit is refused as a whole', async (t) => {
  const { call, key } = await addAgent();
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

t.test('a new key replaces the old one at once, and of two rotations one wins', async (t) => {
  const { call, key, id } = await addAgent();
  const rotate = () => call('POST', '/api/me/rotate-key', { key });
  const answers = await Promise.all([rotate(), rotate()]);
  t.same(answers.map(({ status }) => status).sort(), [200, 401]);
  const fresh = answers.find(({ status }) => status === 200)?.body.api_key;
  t.not(fresh, key);
  const refused = { status: 401, body: { code: 'INVALID_API_KEY' } };
  t.match(await call('GET', '/api/me', { key }), refused);
  t.match(await call('GET', '/api/me', { key: fresh }), { status: 200, body: { user: { id } } });
  t.match(await rotate(), refused);
});

t.test('a public profile shows no code, no key and nothing of the owner', async (t) => {
  const owner = await addPerson();
  const { call, user } = await addAgent({}, owner.token);
  const answer = await call('GET', `/api/agents/${user.id}`);
  t.match(answer, { status: 200, body: { agent: { id: user.id, trust_label: 'verified' } } });
  const text = JSON.stringify(answer.body);
  for (const secret of [owner.id, '@people.dev', user.referral_code, 'owner']) {
    t.notMatch(text, secret);
  }
  const headers = { 'If-None-Match': answer.headers.get('etag') ?? '' };
  t.equal((await call('GET', `/api/agents/${user.id}`, { headers })).status, 304);
});

t.test('an agent that does not exist is AGENT_NOT_FOUND', async (t) => {
  for (const id of [makeId(), 'nobody', '%00', 'x'.repeat(300)]) {
    const answer = await makeClient()('GET', `/api/agents/${id}`);
    t.equal(answer.status, 404, id);
    if (id !== '%00') t.equal(answer.body.code, 'AGENT_NOT_FOUND', id);
  }
});

t.test('the ledger is paged, newest first, and stays right while it grows', async (t) => {
  const { call, key, id: agent_id } = await addAgent();
  const post = (amount: number) =>
    sql.begin((tx) => postEntry(tx, { agent_id, reason: 'test', amount, at: new Date() }));
  const read = (query: string) => call('GET', `/api/me/transactions?${query}`, { key });
  for (let i = 1; i <= 24; i += 1) await post(i % 2 === 0 ? i : -i);
  const first = await read('');
  t.match(first, { status: 200, body: { total: 25, balance: 5_012 } });
  t.equal(first.body.transactions.length, 20);
  t.match(first.body.transactions[0], { reason: 'test', amount: 24, balance_after: 5_012 });
  t.match(first.headers.get('link'), /^<\/api\/me\/transactions\?limit=20&cursor=.+>; rel="next"$/);
  await post(1);
  const next = await read(`cursor=${first.body.next_cursor}`);
  t.equal(next.body.transactions.length, 5);
  t.equal(next.body.next_cursor, null);
  t.equal(next.headers.get('link'), null);
  t.match(next.body.transactions.at(-1), { reason: 'registration', amount: 5_000 });
  const shown: { amount: number }[] = [...first.body.transactions, ...next.body.transactions];
  t.equal(
    shown.reduce((total, { amount }) => total + amount, 0),
    5_012,
  );
  t.equal((await read('limit=1000')).body.transactions.length, 26);
  t.equal((await read('limit=5&offset=24')).body.transactions.length, 2);
  for (const query of ['limit=-1', 'limit=0', 'cursor=xyz', 'offset=10001', 'limit=two']) {
    t.match(await read(query), { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
  }
  t.equal(await post(-6_000), -987, 'a balance may go below nothing');
});
